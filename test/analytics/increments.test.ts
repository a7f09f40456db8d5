import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHANGES } from '../../cli/analytics/changes.ts';
import { exportChanges, type LoadOptions } from '../../cli/analytics/export-changes.ts';
import { lockTarget, TargetBusy } from '../../cli/analytics/export-lock.ts';
import { UnknownView } from '../../cli/analytics/views.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import { olderProcess } from '../../platform/postgres/upgrade-path.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { forgetExpiredSessionsBefore } from '../../projections/sessions/sessions.ts';
import { ANNA, settled as settledReservation } from '../lookup/lookup-events.ts';
import { eventually } from '../support/eventually.ts';
import { makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

const VIEWS = Object.keys(CHANGES);
const HOUR = 3_600_000;
const AT = Date.parse('2026-03-01T12:00:00.000Z');
const iso = (at: number): string => new Date(at).toISOString();

let stack: TestStack;
let folder: string;
let projecting: ReturnType<TestStack['project']>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-increments-'));
  stack = await startTestStack();
  await makeExamples(stack.store);
  projecting = stack.project(allProjections);
  await stack.caughtUp(allProjections);
});
afterAll(async () => {
  await stack.close();
  rmSync(folder, { recursive: true });
});

type TestEvent = { readonly type: string; readonly data: object };
const put = (stream: string, ...events: readonly TestEvent[]) => {
  const metadata = { $correlationId: 'c', $causationId: 'c', at: iso(AT) };
  return stack.store.append(
    stream,
    'any',
    events.map((event) => ({ ...event, id: randomUUID(), metadata })),
  );
};

const load = async (view: string, since: string | bigint, over: Partial<LoadOptions> = {}) => {
  const loaded = await exportChanges({ url: stack.url, view, since: BigInt(since), out: folder, ...over });
  const files = loaded.folder === null ? [] : filesIn(loaded.folder);
  expect(loaded.files).toBe(files.length);
  const rows = [];
  for (const { path, day } of files) {
    const found = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    for (const row of found) rows.push({ ...row, day });
  }
  expect(rows).toHaveLength(loaded.rows);
  return { ...loaded, content: rows as LoadedRow[] };
};
type LoadedRow = Record<string, unknown> & {
  readonly day: string;
  readonly changed_position: bigint;
  readonly deleted: boolean;
};

const filesIn = (path: string) =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => ({ path: join(path, name), day: /^day=([^/]+)/.exec(name)?.[1] ?? '' }));

const idOf = (view: string, row: Record<string, unknown>): string =>
  (CHANGES[view]?.id ?? []).map((column) => JSON.stringify(row[column])).join(' ');

/** The rows as JSON, of a view's own columns. */
const sorted = (rows: readonly object[]): string[] =>
  rows
    .map((row) => {
      const { day: _, changed_position: __, deleted: ___, ...own } = row as Record<string, unknown>;
      return JSON.stringify(own, (_name, value) => (typeof value === 'bigint' ? String(value) : value));
    })
    .sort();
const one = async (query: string): Promise<Record<string, unknown>> => {
  const [row] = await stack.rows(query);
  if (!row) throw new Error(`no row: ${query}`);
  return row;
};
const inDatabase = (view: string) => stack.rows(`select * from analytics.${view}`);

describe('a first load', () => {
  it.each(VIEWS)('has all rows of %s, by the UTC day of their time', async (view) => {
    const { content, position, deleted } = await load(view, 0n);
    const expected = await inDatabase(view);
    expect(expected.length).toBeGreaterThan(view === 'domains' ? -1 : 0);
    expect(sorted(content)).toEqual(sorted(expected));
    expect(deleted).toBe(0);
    expect(BigInt(position)).toBe(await stack.store.head());
    for (const row of content) {
      const time = Object.values(row).find((value) => value instanceof Date);
      expect(row.day).toBe((time as Date).toISOString().slice(0, 10));
    }
  });

  it('has rows of before 0.3.0, which have no position', async () => {
    await stack.pool.query('update read.tracker set changed_position = 0');
    expect((await load('trackers', 0n)).rows).toBe(2);
    await stack.pool.query(`update read.tracker t set changed_position = e.position from eventlog.event e
                            where e.type = 'trackers.TrackerCreated.v1' and e.data ->> 'tracker_id' = t.tracker_id::text`);
  });
});

describe('the next load', () => {
  it('has the rows that changed, each with the position of its change, and the ids of those that are gone', async () => {
    const domain = { domain_id: randomUUID(), hostname: 'visits.example.com' };
    const claimed = { ...domain, tracker_id: randomUUID(), partner_id: ANNA };
    await put(`domain-${domain.hostname}`, {
      type: 'domains.DomainClaimed.v1',
      data: { ...claimed, claimed_at: iso(AT) },
    });
    await stack.caughtUp(allProjections);
    const before = (await stack.store.head()) ?? 0n;

    const hook = await one(`select webhook_id, partner_id from analytics.webhooks where deleted_at is null`);
    const session = await one('select session_id, expires_at from analytics.sessions limit 1');
    const unit = await one('select * from read.reveal_unit limit 1');
    const tracker = await one(`select tracker_id, partner_id from analytics.trackers where name = 'site'`);
    const open = await one(`select reservation_id from analytics.reservations where state = 'reserved'`);
    const erased = await one(
      `select reservation_id from analytics.reservations where state <> 'reserved' limit 1`,
    );
    const count = ['key_b', '2026-02-28T10', 'isp', 100, 100, 8_000];
    await put(`webhooks-${ANNA}`, {
      type: 'webhooks.EndpointDeleted.v1',
      data: { ...hook, deleted_at: iso(AT + HOUR) },
    });
    await put('usage-y-2026-03-01', { type: 'usage.LookupsCorrected.v1', data: { counts: [count] } });
    await put(`domain-${domain.hostname}`, {
      type: 'domains.DomainReleased.v1',
      data: { ...claimed, released_at: iso(AT) },
    });
    await put(expiredStream(ANNA, '2026-03-31'), {
      type: 'sessions.SessionsExpired.v1',
      data: { partner_id: ANNA, sessions: [[session.session_id, iso(AT)]] },
    });
    await put(`trackers-${ANNA}`, {
      type: 'trackers.TrackerDisabled.v1',
      data: { ...tracker, disabled_at: iso(AT) },
    });
    await put(`intake-${ANNA}`, settledReservation(3), {
      type: 'lookup.ReservationsErased.v1',
      data: { partner_id: ANNA, reservation_ids: [erased.reservation_id], erased_at: iso(AT) },
    });
    await put(`billing-${ANNA}`, {
      type: 'billing.RevealBilled.v1',
      data: {
        ...unit,
        completed_at: (unit.completed_at as Date).toISOString(),
        previous: '0'.repeat(64),
        digest: '0'.repeat(64),
        ledger_number: undefined,
        changed_position: undefined,
      },
    });
    await stack.caughtUp(allProjections);
    const positions = Object.fromEntries(
      (await stack.rows(`select type, max(position) as position from eventlog.event group by type`)).map(
        ({ type, position }) => [type, BigInt(position as string)],
      ),
    );

    const changed = async (view: string) => (await load(view, before)).content;
    const at = (type: string) => ({ changed_position: positions[type] });
    expect(await changed('webhooks')).toMatchObject([
      { webhook_id: hook.webhook_id, deleted: false, ...at('webhooks.EndpointDeleted.v1') },
    ]);
    // Pending ones are cancelled without a change of their own.
    expect(await changed('deliveries')).toMatchObject([
      { state: 'cancelled', deleted: false, ...at('webhooks.EndpointDeleted.v1') },
    ]);
    expect(await changed('usage_hours')).toMatchObject([
      {
        key_id: 'key_b',
        hour: new Date('2026-02-28T10:00:00Z'),
        requests: null,
        day: '2026-02-28',
        deleted: true,
        ...at('usage.LookupsCorrected.v1'),
      },
    ]);
    expect(await changed('domains')).toMatchObject([
      { domain_id: domain.domain_id, hostname: null, deleted: true, ...at('domains.DomainReleased.v1') },
    ]);
    expect(await changed('sessions')).toMatchObject([
      {
        session_id: session.session_id,
        first_seen_at: null,
        day: '__HIVE_DEFAULT_PARTITION__',
        deleted: true,
        ...at('sessions.SessionsExpired.v1'),
      },
    ]);
    expect(await changed('trackers')).toMatchObject([
      { name: 'site', disabled_at: new Date(AT), ...at('trackers.TrackerDisabled.v1') },
    ]);
    expect(await changed('reservations')).toMatchObject([
      { reservation_id: open.reservation_id, state: 'settled', ...at('lookup.ReservationSettled.v1') },
      {
        reservation_id: erased.reservation_id,
        state: null,
        deleted: true,
        ...at('lookup.ReservationsErased.v1'),
      },
    ]);
    expect(await changed('units')).toMatchObject([
      { reveal_id: unit.reveal_id, ledger_number: 0, ...at('billing.RevealBilled.v1') },
    ]);
    for (const view of ['partners', 'api_keys', 'reveals', 'delivery_attempts', 'tracker_hours']) {
      expect(await changed(view), view).toEqual([]);
    }
  });

  it('has nothing after a rebuild, because positions come from the events', async () => {
    const tables = await stack.rows(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
       where c.relnamespace = 'read'::regnamespace and c.relkind = 'r' and a.attname in ('changed_position', 'last_position')`,
    );
    expect(tables.length).toBeGreaterThan(15);
    const whole = async () => {
      const found: Record<string, string[]> = {};
      for (const { name } of tables) {
        const rows = await stack.rows(`select to_jsonb(t) as row from read.${name} t`);
        found[String(name)] = rows.map(({ row }) => JSON.stringify(row)).sort();
      }
      return found;
    };
    const before = await whole();
    await rebuild({ ...stack, projections: allProjections });
    expect(await whole()).toEqual(before);
    const head = (await stack.store.head()) ?? 0n;
    expect((await load('usage_hours', head)).content).toEqual([]);
  });
});

describe('a refused load', () => {
  it('names the views that can be loaded, or what to do', async () => {
    await expect(load('lookups', 0n)).rejects.toThrow(/^no_positions: .*there are .*sessions/);
    await expect(load('secrets', 0n)).rejects.toThrow(UnknownView);
    const head = (await stack.store.head()) ?? 0n;
    await expect(load('sessions', head + 1n)).rejects.toThrow(/^position_ahead/);
  });

  it('is recognised by a process of an earlier release that runs', async () => {
    await stack.pool.query(
      `insert into work.process (process_id, role, seen_at, release) values ($1, 'workers', now(), '0.1.0')`,
      ['dddddddd-0000-4000-8000-000000000001'],
    );
    expect(await olderProcess(stack.pool)).toBeNull();
    await stack.session(`set application_name = 'doorplate heartbeat dddddddd-0000-4000-8000-000000000001'`);
    // On a machine that had hardly any time for it, a session's name was not there for the statement after (seen once).
    const found = await eventually(
      'a process of 0.1.0',
      () => olderProcess(stack.pool),
      (who) => who !== null,
    );
    expect(found).toMatch(/of version 0\.1\.0$/);
  });

  it('begins before expiries that have been forgotten', async () => {
    const { position } = await load('sessions', 0n);
    const before = BigInt(position) - 10n;
    await expect(load('sessions', before)).resolves.toMatchObject({ deleted: 1 });
    await forgetExpiredSessionsBefore(stack.pool, '2026-04-01');
    await expect(load('sessions', before)).rejects.toThrow(/^position_too_old/);
    await expect(load('sessions', position)).resolves.toMatchObject({ rows: 0 });
    await expect(load('reveals', before)).resolves.toMatchObject({ deleted: 0 });
  });
});

/** Looks at a folder all the time and tells the fewest files that its loads ever had together. */
const WATCHER = `
  const { parentPort, workerData, receiveMessageOnPort } = require('node:worker_threads');
  const { readdirSync, statSync } = require('node:fs');
  const filesIn = (name) => {
    try {
      return readdirSync(workerData + '/' + name, { recursive: true }).filter((file) => file.endsWith('.parquet'));
    } catch {
      return [];
    }
  };
  // The inode too: a load may be replaced between two looks.
  const loads = () => readdirSync(workerData).filter((name) => name.startsWith('since=')).map((name) => {
    try {
      return [name, statSync(workerData + '/' + name).ino];
    } catch {
      return [name, null];
    }
  });
  parentPort.postMessage('begun');
  let fewest = Infinity;
  while (!receiveMessageOnPort(parentPort)) {
    const before = loads();
    const files = new Set(before.flatMap(([name]) => filesIn(name)));
    if (loads().join() === before.join()) fewest = Math.min(fewest, files.size);
  }
  parentPort.postMessage(fewest);`;

describe('a load that is stopped or repeated', () => {
  const loads = () => readdirSync(join(folder, 'units')).sort();

  it('leaves the folder as it was, and then replaces the loads that it covers', async () => {
    const { position } = await load('units', 0n);
    await load('units', BigInt(position) - 3n);
    const before = loads();
    const aborted = AbortSignal.abort(new Error('stopped'));
    await expect(load('units', 0n, { signal: aborted })).rejects.toThrow('stopped');
    expect(loads()).toEqual(before);
    expect(before).toHaveLength(2);
    await load('units', 0n);
    expect(loads()).toEqual(['since=0']);
  });

  it('is refused while another one runs, until that ends or is killed, and removes what it left', async () => {
    const other = new pg.Client({ connectionString: stack.url });
    other.on('error', () => undefined);
    await other.connect();
    await lockTarget(other, folder, 'units');
    const left = join(folder, 'units', `.0.${randomUUID()}.partial`);
    mkdirSync(join(left, 'day=2026-03-01'), { recursive: true });
    await expect(load('units', 0n)).rejects.toThrow(
      /^export_running: another export writes .*units: wait for its end$/,
    );
    await expect(load('units', 0n)).rejects.toThrow(TargetBusy);
    expect(existsSync(left)).toBe(true);
    // As the system does with the connections of a killed process, in the middle of a query.
    other.query('select pg_sleep(60)').catch(() => undefined);
    (other as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    await until('the lock is free', () =>
      load('units', 0n).then(
        () => true,
        () => false,
      ),
    );
    expect(loads()).toEqual(['since=0']);
  });

  it('does not disturb one of another view', async () => {
    let second: Promise<unknown> | undefined;
    await load('units', 0n, {
      onRows: () => {
        second ??= load('trackers', 0n);
      },
    });
    expect(await second).toMatchObject({ view: 'trackers' });
  });

  it('is in place before the load that it replaces goes, wherever it is killed', async () => {
    const out = mkdtempSync(join(tmpdir(), 'doorplate-killed-'));
    await load('units', 0n, { out });
    const place = join(out, 'units');
    // As a run leaves them that is killed before it removes the older load, and one that is killed before it renames the new one.
    cpSync(join(place, 'since=0'), join(place, 'since=00'), { recursive: true });
    const { rows } = await load('units', 0n, { out });
    expect(readdirSync(place)).toEqual(['since=0']);
    renameSync(join(place, 'since=0'), join(place, 'since=00'));
    expect((await load('units', 0n, { out })).rows).toBe(rows);
    expect(readdirSync(place)).toEqual(['since=0']);

    const watcher = new Worker(WATCHER, { eval: true, workerData: place });
    await once(watcher, 'message');
    for (let n = 0; n < 10; n += 1) await load('units', 0n, { out });
    watcher.postMessage('end');
    const [fewest] = await once(watcher, 'message');
    expect(fewest).toBe(filesIn(join(place, 'since=0')).length);
    rmSync(out, { recursive: true });
  });

  it('is refused when it would end before a load that it replaces', async () => {
    const { position } = await load('units', 0n);
    // Projections that run may save their positions meanwhile.
    await projecting.stop();
    await stack.pool.query('update read.projection set position = position - 1');
    try {
      await expect(load('units', 0n)).rejects.toThrow(
        new RegExp(`^position_behind: the read models are at \\d+, and .*since=0 ends at ${position}: `),
      );
    } finally {
      await stack.pool.query('update read.projection set position = position + 1');
      projecting = stack.project(allProjections);
    }
    expect(loads()).toEqual(['since=0']);
  });
});

/** A million takes minutes: for a run by hand. */
const SESSIONS = Number(process.env.INCREMENT_SESSIONS ?? 3_600);
const ROUNDS = 12;
const OF_AN_APPEND = 1_000;

/** Appends sessions, visits of known ones, and expiries, round by round. @returns the ids of the sessions that are left */
const writeSessions = async (): Promise<string[]> => {
  const known: string[] = [];
  const putAll = async (
    ids: readonly string[],
    streamOf: () => string,
    eventOf: (ids: string[]) => TestEvent[],
  ) => {
    for (let at = 0; at < ids.length; at += OF_AN_APPEND) {
      await put(streamOf(), ...eventOf(ids.slice(at, at + OF_AN_APPEND)));
    }
  };
  for (let n = 0; n < ROUNDS; n += 1) {
    const at = AT + n * 6 * HOUR;
    const facts = {
      tracker_id: ANNA,
      partner_id: ANNA,
      visitor: 'x',
      visitor_country: 'DE',
      visit_id: randomUUID(),
    };
    const times = { first_seen_at: iso(at), expires_at: iso(at + 30 * 24 * HOUR) };
    const tab = () => `tab-${randomUUID()}`;
    const fresh = Array.from({ length: SESSIONS / ROUNDS }, () => randomUUID());
    await putAll(fresh, tab, (ids) =>
      ids.map((session_id) => ({
        type: 'sessions.SessionCreated.v1',
        data: { ...facts, ...times, session_id, sealed: 'x' },
      })),
    );
    const again = known.filter((_, index) => index % ROUNDS === n);
    await putAll(again, tab, (ids) =>
      ids.map((session_id) => ({
        type: 'sessions.SessionVisited.v1',
        data: { ...facts, ...times, session_id, seen_at: iso(at) },
      })),
    );
    const expired = () => expiredStream(ANNA, '2026-03-31');
    await putAll(known.splice(0, n * 5), expired, (ids) => [
      {
        type: 'sessions.SessionsExpired.v1',
        data: { partner_id: ANNA, sessions: ids.map((id) => [id, iso(at)]) },
      },
    ]);
    known.push(...fresh);
  }
  return known;
};

describe('loads beside a service that writes', () => {
  it(
    `have every change of each of ${SESSIONS} rows once, and end with what the view has`,
    async () => {
      const start = (await load('sessions', 0n)).position;
      let position = start;
      const copy = new Map<string, LoadedRow>();
      const seen = new Set<string>();
      const wrong: LoadedRow[] = [];
      const sizes: number[] = [];
      const next = async (): Promise<void> => {
        const { content, ...loaded } = await load('sessions', position);
        for (const row of content) {
          const id = idOf('sessions', row);
          const change = `${id} ${row.changed_position}`;
          const isInside =
            row.changed_position > BigInt(position) && row.changed_position <= BigInt(loaded.position);
          if (!isInside || seen.has(change)) wrong.push(row);
          seen.add(change);
          copy.set(id, row);
        }
        position = loaded.position;
        sizes.push(content.length);
      };
      let isWriting = true;
      const writing = writeSessions().finally(() => {
        isWriting = false;
      });
      while (isWriting) await next();
      const known = await writing;
      const head = (await stack.store.head()) ?? 0n;
      while (BigInt(position) < head) await next();

      expect(wrong).toEqual([]);
      expect(sizes.length).toBeGreaterThan(2);
      const left = [...copy.values()].filter(({ deleted }) => !deleted);
      const expected = await stack.rows(
        `select v.* from analytics.sessions v join read.session s using (session_id) where s.last_position > $1`,
        [start],
      );
      // One comparison: a difference of two long lists takes minutes to print.
      expect(sorted(left).join('\n') === sorted(expected).join('\n')).toBe(true);
      expect(left).toHaveLength(known.length);
      expect(copy.size - left.length).toBeGreaterThan(100);
    },
    60_000 + SESSIONS,
  );
});
