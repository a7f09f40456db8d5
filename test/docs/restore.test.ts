import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../domain/kernel/time.ts';
import { allProjections } from '../../projections/all.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { backUp, type Files, KEPT, MADE_AGAIN, restore } from '../support/backup.ts';
import { logIn } from '../support/dashboard.ts';
import { testDatabase } from '../support/database.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import {
  answersOf,
  COMPANY,
  type Everything,
  ISP,
  PENDING,
  reveal,
  type Surroundings,
  settled,
  startSurroundings,
  UNKNOWN,
  useEverything,
} from '../support/everything.ts';
import { aCompany } from '../support/providers.ts';
import { collect, feed } from '../support/tracking.ts';
import { verified } from '../support/webhook-sink.ts';

// The command uses the machine's clock.
const clock = manualClock(Date.now());

let around: Surroundings;
let used: Everything;
let first: TestApi;
let restored: TestApi;

const isOne = (some: readonly unknown[]) => some.length === 1;

/** As the page says: an empty database, the program's own tables, the files, and all read models. */
const restoredFrom = async (files: Files): Promise<TestApi> => {
  const database = await testDatabase();
  const own = { DATABASE_URL: database.url, MASTER_KEY };
  const command = async (...args: string[]) => {
    const { code, stderr } = await doorplateHere(args, own);
    expect(code, stderr).toBe(0);
  };
  await command('store', 'make-tables');
  await restore(database.url, files);
  await command('store', 'new-epoch');
  await command('projection', 'rebuild', '--all');
  return startApi({ clock, providers: [around.provider], env: around.env, database });
};

/** After the backup, so that the log assigns their positions again. */
const LOST_VISITS = 5;
let cursorOfLost: string;
let before: Awaited<ReturnType<typeof answersOf>>;

beforeAll(async () => {
  around = await startSurroundings();
  first = await startApi({ clock, providers: [around.provider], env: around.env });
  used = await useEverything(first, around);
  const files = await backUp(first.runtime.databaseUrl);
  before = await answersOf(first, used);
  for (let n = 0; n < LOST_VISITS; n += 1) await collect(first, used.tracker, { ip: COMPANY });
  cursorOfLost = (await feed(first, used.key)).next_cursor;
  await settled(first);
  await first.close();
  restored = await restoredFrom(files);
}, 120_000);
afterAll(async () => {
  await restored?.close();
  await around?.close();
});

describe('docs/backup-and-upgrade.md, on backups', () => {
  it('lists every table that is no read model, as backed up or as recreated', async () => {
    const { rows } = await restored.sql.query(
      `select n.nspname || '.' || c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
    );
    const models = [...allProjections.flatMap(({ tables }) => tables), 'projection'];
    const rebuilt = models.map((table) => `read.${table}`);
    expect([...KEPT, ...MADE_AGAIN, ...rebuilt].toSorted()).toEqual(
      rows.map(({ table }) => table).toSorted(),
    );
  });
});

describe('a product restored by the documented steps', () => {
  it('answers as before', async () => {
    await settled(restored);
    await eventually('the domain was checked', async () => {
      const { rows } = await restored.sql.query('select from work.domain_look where looked_at is not null');
      return rows.length === 1;
    });
    expect(before.told.map(({ statusCode }) => statusCode)).not.toContain(500);
    expect(await answersOf(restored, used)).toEqual(before);
  });

  it('lets dashboard users log in with their passwords, and no one else', async () => {
    expect((await logIn(restored, used.user.name)).statusCode).toBe(303);
    expect((await logIn(restored, used.user.name, 'not the password')).statusCode).toBe(401);
  });

  it('shows new sessions to a partner whose cursor is later than the backup', async () => {
    const known = (await feed(restored, used.key)).sessions.length;
    const count = around.received('session.created').length;
    await collect(restored, used.tracker, { ip: UNKNOWN });
    const all = (await feed(restored, used.key)).sessions;
    expect(all).toHaveLength(known + 1);
    const { sessions, next_cursor } = await feed(restored, used.key, `cursor=${cursorOfLost}`);
    expect(sessions).toEqual(all.slice(known));
    expect((await feed(restored, used.key, `cursor=${next_cursor}`)).sessions).toEqual([]);
    await eventually(
      'the receiver has the event',
      () => around.received('session.created').slice(count),
      isOne,
    );
  });

  it('repeats no side effect and recognizes repeated requests', async () => {
    const count = around.received().length;
    const visits = (await feed(restored, used.key)).sessions;
    expect((await collect(restored, used.tracker, { ip: COMPANY, body: used.visit })).statusCode).toBe(204);
    const again = await reveal(restored, used.key, visits[0]?.session_id, used.idempotencyKey);
    expect(again).toMatchObject({ status: 'complete', billable: true });
    expect(used.urls).toContain(`/v1/reveals/${again.reveal_id}`);
    await settled(restored);
    expect((await feed(restored, used.key)).sessions).toEqual(visits);
    expect(around.received()).toHaveLength(count);
  });

  it('completes what waited, notifies with the old secret, and bills in the same chain', async () => {
    const count = around.received('reveal.completed').length;
    around.provider.says(PENDING, aCompany('Late'));
    clock.advance(MINUTE);
    const events = await eventually(
      'the event is notified',
      () => around.received('reveal.completed').slice(count),
      isOne,
    );
    const [event] = events.map((request) => verified(request, used.webhook.signing_secret));
    expect(event?.data).toMatchObject({ reveal_id: used.pendingReveal, status: 'complete' });
    await settled(restored);
    const { report } = await answersOf(restored, used);
    expect(before.report).toMatchObject({ units: 1, differences: [] });
    expect(report).toMatchObject({ units: 2, differences: [] });
    await collect(restored, used.tracker, { ip: ISP });
    await settled(restored);
    expect((await feed(restored, used.key)).sessions).toHaveLength(5);
  });
});
