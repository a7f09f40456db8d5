import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OutcomeUnknown, StoreUnavailable } from '../../event-store/port.ts';
import { Committer } from '../../event-store/postgres/committer.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { startDatabaseProxy } from '../support/database-proxy.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const anEvent = (id: string) => ({ id, type: 'test.Happened.v1', data: '{}', metadata: '{}' });

const appending = (url: string, deadlineMs: number) => {
  const committer = new Committer({ url, deadlineMs, committed: () => undefined });
  const append = (stream: string) => committer.append(stream, 'no_stream', [anEvent(randomUUID())]);
  return { append, close: () => committer.close() };
};

it('an append that PostgreSQL refuses fails alone, and costs those beside it few commits', async () => {
  let commits = 0;
  const committer = new Committer({
    url: database.url,
    deadlineMs: 4_000,
    committed: () => {
      commits += 1;
    },
  });
  const ids = Array.from({ length: 256 }, (_, nth) => (nth === 100 ? 'no id' : randomUUID()));
  const appends = await Promise.allSettled(
    ids.map((id, nth) => committer.append(`test-${nth}`, 'no_stream', [anEvent(id)])),
  );
  await committer.close();
  const failed = appends.flatMap((append, nth) =>
    append.status === 'rejected' ? [[nth, append.reason]] : [],
  );
  expect(failed).toEqual([[100, expect.any(StoreUnavailable)]]);
  expect(commits).toBeLessThanOrEqual(8);
});

describe('when sessions become read-only', () => {
  let other: pg.Client;
  beforeEach(async () => {
    other = new pg.Client(database.url);
    await other.connect();
  });
  afterEach(() => other.end());
  const setReadOnly = (value: 'on' | 'off') =>
    other.query(
      `alter database ${new URL(database.url).pathname.slice(1)} set default_transaction_read_only = ${value}`,
    );

  it('an append is unknown whose answer was lost before', async () => {
    const { proxy, url } = await startDatabaseProxy(database.url);
    const { append, close } = appending(url, 1_000);
    await append('test-before');
    await setReadOnly('on');
    proxy.freeze('answers');
    const lost = append('test-lost');
    const isWritten = "select from eventlog.stream where name = 'test-lost'";
    await until('it is written', async () => (await other.query(isWritten)).rowCount === 1);
    proxy.cut();
    proxy.thaw();
    await expect(lost).rejects.toThrow(OutcomeUnknown);
    await setReadOnly('off');
    await close();
    await proxy.close();
  });

  it('an append is refused, and the next one has a session of its own', async () => {
    await setReadOnly('on');
    const { append, close } = appending(database.url, 4_000);
    await expect(append('test-refused')).rejects.toThrow(StoreUnavailable);
    await setReadOnly('off');
    await expect(append('test-refused')).resolves.toMatchObject({ revision: 0 });
    await close();
  });
});

describe('while another session holds the writer', () => {
  let other: pg.Client;
  let observer: pg.Client;
  beforeEach(async () => {
    [other, observer] = [new pg.Client(database.url), new pg.Client(database.url)];
    await Promise.all([other.connect(), observer.connect()]);
    await other.query('begin; select eventlog.lock_writer()');
  });
  afterEach(() => Promise.all([other.end(), observer.end()]));

  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await observer.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows.length > 0;
  };

  it('an append that was given up is not written later', async () => {
    const { append, close } = appending(database.url, 300);
    await expect(append('test-late')).rejects.toThrow(OutcomeUnknown);
    await until('no session waits', async () => !(await isWaiting()), 3_000);
    await other.query('commit');
    const { rows } = await other.query("select from eventlog.stream where name = 'test-late'");
    expect(rows).toEqual([]);
    await close();
  });
});
