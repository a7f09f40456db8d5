/** `doorplate privacy erase` beside a running service, and what a reader of every table and event finds afterwards. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { visitorText } from '../../domain/signals/events.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { sendSignals, signal } from '../support/signals.ts';
import { findWords, readTables } from '../support/stored-secrets.ts';
import { describeOnStores, scavenge } from '../support/stores.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

const VISITOR = '5.9.0.1';
const OTHER = '5.9.0.2';

describeOnStores('erasing a visitor', (env) => {
  const provider = scriptedProvider();
  let api: TestApi;
  let key: Key;
  let tracker: string;
  let webhook: string;
  /** The visitor's session, and another visitor's in the same tab. */
  let session: string;
  let other: string;
  let reveal: { readonly id: string; readonly idempotencyKey: string };
  let pending: { readonly id: string; readonly idempotencyKey: string };

  const visit = async (ip: string, token: string, custom: object): Promise<string> => {
    await collect(api, tracker, { ip, body: { token, custom } });
    return String((await feed(api, key)).sessions.at(-1)?.session_id);
  };
  const post = (id: string, idempotencyKey: string) =>
    api.inject(key, {
      method: 'POST',
      url: `/v1/sessions/${id}/reveal`,
      headers: { 'idempotency-key': idempotencyKey },
    });
  const get = (url: string) => api.inject(key, { method: 'GET', url });
  const command = async (...args: string[]) => {
    const ended = await doorplateHere(['privacy', ...args], {
      DATABASE_URL: api.runtime.databaseUrl,
      DATA_DIR: api.runtime.dataDir,
      MASTER_KEY,
      ...env,
    });
    return { ...ended, json: ended.stdout.startsWith('{') ? JSON.parse(ended.stdout) : null };
  };
  const words = [VISITOR, 'the-visitor'];
  /** The address in what a visitor's session, or clue, is known by. */
  const digested = [VISITOR, visitorText(VISITOR)];
  const shown = async () => {
    await api.caughtUp();
    const found = await findWords(api.runtime, api.sql, words, digested);
    // What a partner asked for itself stays, and is named by the report.
    return found.filter((text) => !/^(event intake-|eventlog\.event .*"stream":"intake-)/.test(text));
  };

  beforeAll(async () => {
    api = await startApi({ clock: { now: () => Date.now() }, providers: [provider], env });
    key = await api.key({ company_signals: true });
    tracker = await makeTracker(api, key);
    const endpoint = {
      name: 'hooks',
      url: 'https://hooks.example.com/',
      events: ['session.created', 'reveal.completed'],
    };
    webhook = (await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload: endpoint })).json().id;
    const token = randomUUID();
    session = await visit(VISITOR, token, { name: 'the-visitor' });
    other = await visit(OTHER, token, { name: 'another' });
    pending = { id: '', idempotencyKey: randomUUID() };
    pending = { ...pending, id: (await post(session, pending.idempotencyKey)).json().reveal_id };
    provider.says(VISITOR, aCompany('Acme'));
    provider.says(OTHER, aCompany('Other'));
    await api.post(key, VISITOR);
    await api.settled(key, VISITOR);
    const idempotencyKey = randomUUID();
    reveal = { id: (await post(session, idempotencyKey)).json().reveal_id, idempotencyKey };
    await sendSignals(api, [
      signal(Date.now(), { ip: VISITOR, event_id: 'of-the-one' }),
      signal(Date.now(), { ip: OTHER, event_id: 'of-the-other' }),
    ]);
    await eventually('the events are queued', async () => {
      await api.caughtUp();
      return (await get(`/v1/webhooks/${webhook}/deliveries`)).json().deliveries.length >= 3;
    });
  }, 60_000);
  afterAll(() => api.close());

  /** Gives a command its standard input. */
  const givingInput = async (text: string, run: () => Promise<void>) => {
    const own = Object.getOwnPropertyDescriptor(process, 'stdin') as PropertyDescriptor;
    Object.defineProperty(process, 'stdin', {
      configurable: true,
      value: Readable.from([Buffer.from(text)]),
    });
    try {
      await run();
    } finally {
      Object.defineProperty(process, 'stdin', own);
    }
  };

  it('is refused as wrong usage unless one visitor is named', async () => {
    for (const args of [[], ['--ip', VISITOR, '--session', session], ['--tracker', tracker], ['--ip', 'x']])
      expect((await command('erase', ...args)).code, args.join(' ')).toBe(2);
  });

  it('finds what is kept by address and by label, in any spelling, and changes nothing', async () => {
    expect((await shown()).length).toBeGreaterThan(5);
    const found = (await command('find', '--ip', `::ffff:${VISITOR}`, '--json')).json;
    await givingInput(`${VISITOR}\n`, async () => {
      expect((await command('find', '--ip', '-', '--json')).json).toEqual(found);
    });
    await givingInput('no address', async () => {
      const wrong = await command('find', '--ip', '-', '--json');
      expect([wrong.code, wrong.stderr.includes('standard input is not an IP address')]).toEqual([2, true]);
    });
    expect(found.sessions.map((one: { session_id: string }) => one.session_id)).toEqual([session]);
    expect(found).toMatchObject({
      clues: 1,
      saved_results: 1,
      lookups: [{ partner_id: key.partner_id, lookups: 1 }],
    });
    expect(found.payloads).toContain(`evt_session_${session}`);
    const labelled = await command(
      'erase',
      '--tracker',
      tracker,
      '--label',
      'name=another',
      '--dry-run',
      '--json',
    );
    expect(labelled.json.sessions).toMatchObject([{ session_id: other }]);
    expect((await get(`/v1/sessions/${session}`)).statusCode).toBe(200);
  });

  it('leaves no trace of the visitor in answers, tables and events, and reports what remains', async () => {
    const { code, json, stderr } = await command('erase', '--ip', VISITOR, '--json');
    expect([code, stderr]).toEqual([0, '']);
    expect(json.erased).toMatchObject({ sessions: 1, visits: 1, reveals: 2, clues: 1, saved_results: 1 });
    expect(json.audit).toEqual({ differences: 0 });
    expect(json.remains.map((one: { what: string }) => one.what).join()).toContain('intake-');
    expect(codeOf(await get(`/v1/sessions/${session}`))).toBe('session_expired');
    for (const { id, idempotencyKey } of [reveal, pending]) {
      expect(codeOf(await get(`/v1/reveals/${id}`))).toBe('reveal_expired');
      expect(codeOf(await post(session, idempotencyKey))).toBe('reveal_expired');
    }
    expect(codeOf(await post(session, randomUUID()))).toBe('session_expired');
    expect(codeOf(await get(`/v1/lookup?ip=${VISITOR}`))).toBe('not_requested');
    const deliveries = (await get(`/v1/webhooks/${webhook}/deliveries`)).json().deliveries;
    const own = deliveries.filter(
      ({ event_id }: { event_id: string }) => event_id !== `evt_session_${other}`,
    );
    expect(own.length).toBeGreaterThan(1);
    for (const { id } of own)
      expect((await get(`/v1/webhooks/${webhook}/deliveries/${id}`)).json()).toMatchObject({
        state: 'expired',
        event: null,
      });
    if (env.EVENTSTORE_URL === undefined) expect(await shown()).toEqual([]);
  });

  it('leaves no trace in the log of EventStoreDB after a scavenge', async ({ skip }) => {
    const { EVENTSTORE_URL } = env;
    skip(EVENTSTORE_URL === undefined, 'PostgreSQL has no such log');
    const isScavenged = await scavenge(String(EVENTSTORE_URL), api.runtime.store);
    skip(!isScavenged, 'the chunks of the node are too large to be completed');
    expect(await shown()).toEqual([]);
  });

  it('leaves what others have of the same tab and the same day', async () => {
    expect((await get(`/v1/sessions/${other}`)).json()).toMatchObject({ custom: { name: 'another' } });
    expect((await feed(api, key)).sessions.map(({ session_id }) => session_id)).toEqual([other]);
    const { rows } = await api.sql.query('select event_id from read.signal where visitor is not null');
    expect(rows).toEqual([{ event_id: 'of-the-other' }]);
    const again = await sendSignals(api, [signal(Date.now(), { ip: VISITOR, event_id: 'of-the-one' })]);
    expect(again.body).toMatchObject({ duplicates: 1 });
  });

  it('gives the same tables after a rebuild, and counts what was erased', async () => {
    await api.caughtUp();
    const before = await readTables(api.sql);
    const { store, databaseUrl: url } = api.runtime;
    await rebuild({ store, url, projections: allProjections });
    const { forgotten_lookup: _, ...after } = await readTables(api.sql);
    expect(after).toEqual({ ...before, forgotten_lookup: undefined });
    const day = (at: number) => isoTime(at).slice(0, 10);
    const usage = await get(
      `/v1/trackers/${tracker}/usage?from=${day(Date.now() - DAY)}&to=${day(Date.now() + DAY)}`,
    );
    expect(usage.json().totals).toMatchObject({ sessions: 2, reveals: 2 });
  });

  it('finds nothing in a repeat, and says so', async () => {
    const { code, stdout } = await command('erase', '--ip', VISITOR);
    expect(code).toBe(0);
    expect(stdout).toContain('Nothing is kept of this visitor: this run erased nothing.\n');
    expect(stdout).toContain('entries of the ledger');
  });
});
