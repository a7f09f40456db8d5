import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { DAY, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import { migrate } from '../../platform/postgres/migrate.ts';
import { type ManualClock, manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse, logIn } from '../support/dashboard.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import {
  answersOf,
  COMPANY,
  PENDING,
  reveal,
  type Surroundings,
  settled,
  startSurroundings,
} from '../support/everything.ts';
import { aCompany } from '../support/providers.ts';
import { collect, feed } from '../support/tracking.ts';
import { verified } from '../support/webhook-sink.ts';
import { expire } from './earlier.ts';
import { snapshotResults } from './nights.ts';
import { comparable, loadDatabase, RECORDED_AT, type Recorded, readRecorded } from './recorded.ts';

describe.each(['0.2.0', '0.3.0'])('a database that %s wrote', (release) => {
  let recorded: Recorded;
  let used: Recorded['used'];
  let expected: ReturnType<typeof comparable>;
  let around: Surroundings;
  let clock: ManualClock;
  let database: TestDatabase;
  let api: TestApi;
  const start = () => startApi({ clock, providers: [around.provider], env: around.env, database });

  beforeAll(async () => {
    around = await startSurroundings();
    recorded = readRecorded(release, around);
    used = recorded.used;
    expected = comparable(recorded.answers);
    clock = manualClock(RECORDED_AT);
    database = await emptyDatabase();
    await loadDatabase(database.url, recorded.database);
    await migrate(database.url);
  }, 60_000);
  afterAll(async () => {
    await api?.close();
    await around?.close();
  });

  it('rebuilds every read model', { timeout: 60_000 }, async () => {
    const copy = await emptyDatabase();
    await loadDatabase(copy.url, recorded.database);
    const { code, stderr } = await doorplateHere(['projection', 'rebuild', '--all'], {
      DATABASE_URL: copy.url,
      MASTER_KEY,
    });
    expect(code, stderr).toBe(0);
    const providers = [around.provider];
    const rebuilt = await startApi({ clock, providers, env: around.env, database: copy });
    await settled(rebuilt);
    expect(comparable(await answersOf(rebuilt, used))).toMatchObject(expected);
    await rebuilt.close();
  });

  it('gives the answers that the release gave', async () => {
    api = await start();
    await settled(api);
    expect(comparable(await answersOf(api, used))).toMatchObject(expected);
  });

  it('has every event in a kind of stream for which the catalogue lists it', async () => {
    const { rows } = await api.sql.query<{ prefix: string; type: string }>(
      `select distinct split_part(stream, '-', 1) || '-' as prefix, type from eventlog.event`,
    );
    expect(rows.length).toBeGreaterThan(20);
    const isListed = ({ prefix, type }: { prefix: string; type: string }): boolean =>
      eventCatalogue.some(({ stream, events }) => stream.startsWith(prefix) && Object.hasOwn(events, type));
    expect(rows.filter((row) => !isListed(row))).toEqual([]);
  });

  it('keeps the passwords and logins of dashboard users', async () => {
    const { cookie } = used;
    expect((await browse(api, 'GET', '/dashboard/account', { cookie })).statusCode).toBe(200);
    expect((await logIn(api, used.user.name)).statusCode).toBe(303);
    expect((await logIn(api, used.user.name, 'not the password')).statusCode).toBe(401);
  });

  it('continues the session feed from a cursor of the release', async () => {
    const all = (await feed(api, used.key)).sessions;
    expect(all).toHaveLength(3);
    expect((await feed(api, used.key, `cursor=${recorded.cursor}`)).sessions).toEqual(all.slice(2));
  });

  it('recognises repeated visits and repeated reveals', async () => {
    const visits = (await feed(api, used.key)).sessions;
    expect((await collect(api, used.tracker, { ip: COMPANY, body: used.visit })).statusCode).toBe(204);
    const again = await reveal(api, used.key, visits[0]?.session_id, used.idempotencyKey);
    expect(used.urls).toContain(`/v1/reveals/${again.reveal_id}`);
    await settled(api);
    expect((await feed(api, used.key)).sessions).toEqual(visits);
    expect(around.received()).toEqual([]);
  });

  it('completes the pending reveal, signs its webhook with the old secret and bills it in the same chain', async () => {
    around.provider.says(PENDING, aCompany('Late'));
    clock.advance(MINUTE);
    const requests = await eventually(
      'the receiver has the event',
      () => around.received('reveal.completed'),
      (all) => all.length === 1,
    );
    // The library compares the signature's time with the machine's clock.
    vi.useFakeTimers({ toFake: ['Date'], now: clock.now() });
    const [event] = requests.map((request) => verified(request, used.webhook.signing_secret));
    vi.useRealTimers();
    expect(event?.data).toMatchObject({ reveal_id: used.pendingReveal, status: 'complete' });
    await settled(api);
    const { report } = await answersOf(api, used);
    expect(report).toMatchObject({ units: recorded.answers.report.units + 1, differences: [] });
  });

  it('gives the same results with times cut to days once the day is over', async () => {
    const before = (await api.get(used.key, COMPANY)).json();
    clock.set(Date.parse(utcDay(RECORDED_AT)) + DAY + 2 * 60 * MINUTE);
    await snapshotResults(api);
    expect((await api.sql.query('select from read.saved_lookup where not snapshotted')).rowCount).toBe(0);
    const after = (await api.get(used.key, COMPANY)).json();
    const midnight = (time: string) => `${time.slice(0, 10)}T00:00:00.000Z`;
    expect(after).toEqual({
      ...before,
      request_id: after.request_id,
      enriched_at: midnight(before.enriched_at),
      fresh_until: midnight(before.fresh_until),
    });
  });

  it('forgets its sessions, receipts and webhook bodies after 30 days', async () => {
    clock.set(RECORDED_AT + 32 * DAY);
    await expire(api);
    for (const url of used.urls.filter((one) => /^\/v1\/(sessions|reveals)\//.test(one))) {
      expect((await api.inject(used.key, { method: 'GET', url })).statusCode).toBe(410);
    }
    const { report } = await answersOf(api, { ...used, urls: [] });
    expect(report).toMatchObject({ units: recorded.answers.report.units + 1, differences: [] });
  });
});
