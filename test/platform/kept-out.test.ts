import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createKeptOut } from '../../platform/kept-out.ts';
import { type SharedNotes, sharedNotes } from '../../platform/kept-out-exchange.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const MINUTE = 60_000;
const NOW = 1_000 * MINUTE;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 4 });
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const aProcess = (shared: SharedNotes, clock = { ms: NOW }) =>
  createKeptOut({ windowMs: MINUTE, now: () => clock.ms, shared });

describe('the list of refused partners', () => {
  it('is shared by all processes', async () => {
    const [first, second] = [1, 2].map(() => aProcess(sharedNotes(pool, 'known', MINUTE))) as [
      ReturnType<typeof aProcess>,
      ReturnType<typeof aProcess>,
    ];
    second.note('ben');
    await eventually('the other process knows of Ben', () => first.wantedByOthers('anna').length === 1);
    expect(first.wantedByOthers('ben')).toHaveLength(0);
    expect(first.wantedByOthers('anna')).toEqual([Number.POSITIVE_INFINITY]);
    expect(second.wantedByOthers('anna')).toHaveLength(1);
  });

  it("is the process's own list, for one window, when PostgreSQL does not answer", () => {
    const away = () => Promise.reject(new Error('away'));
    const clock = { ms: NOW };
    const keptOut = aProcess({ share: away, refresh: away }, clock);
    keptOut.note('ben');
    expect(keptOut.wantedByOthers('anna')).toHaveLength(1);
    expect(keptOut.wantedByOthers('ben')).toHaveLength(0);
    clock.ms += MINUTE;
    expect(keptOut.wantedByOthers('anna')).toHaveLength(0);
  });
});

it('adds up what an asker still wants of several processes', async () => {
  const wants = [6, 100, 20];
  const processes = wants.map((of) =>
    createKeptOut({
      windowMs: MINUTE,
      now: () => NOW,
      shared: sharedNotes(pool, 'summed', MINUTE),
      stillWants: () => of,
    }),
  );
  for (const keptOut of processes) keptOut.note('ben');
  const wantedBeside = (asker: string) => processes.map((keptOut) => keptOut.wantedByOthers(asker));
  await eventually('all have what the others share', () =>
    isDeepStrictEqual(wantedBeside('anna'), [[126], [126], [126]]),
  );
  expect(wantedBeside('ben')).toEqual([[], [], []]);
});

it('shares what is noted and still wanted in one statement a second', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => clock.mockRestore());
  const shared: number[] = [];
  const share = async (notes: readonly unknown[]) => shared.push(notes.length);
  const notes = { share, refresh: async () => [] };
  const keptOut = createKeptOut({ windowMs: MINUTE, now: () => NOW, shared: notes, stillWants: () => 2 });
  for (let second = 1; second <= 3; second += 1) {
    clock.mockReturnValue(second * 1_000);
    for (let nth = 0; nth < 500; nth += 1) keptOut.note(`partner ${nth}`);
    for (let nth = 0; nth < 500; nth += 1) keptOut.wantedByOthers(`partner ${nth}`);
    await setImmediate();
  }
  expect(shared).toEqual([1, 500, 500]);
});

/** Rows of a table that several processes share, and a clock of both kinds. */
const inMemory = () => {
  const clock = { ms: NOW };
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(() => clock.ms - NOW);
  onTestFinished(() => monotonic.mockRestore());
  const rows = new Map<string, { readonly asker: string; readonly at: number; readonly wanted: number }>();
  const shared: SharedNotes = {
    share: async (notes) => {
      for (const note of notes) rows.set(note.asker, note);
    },
    refresh: async (since) => [...rows.values()].filter(({ at }) => at > since),
  };
  const process = (stillWants: () => number, aheadMs = 0) =>
    createKeptOut({ windowMs: MINUTE, now: () => clock.ms + aheadMs, shared, stillWants });
  /** Later, once the processes have exchanged what they have. */
  const after = async (ms: number, ...processes: ReturnType<typeof process>[]) => {
    clock.ms += ms;
    for (let nth = 0; nth < 2; nth += 1) {
      for (const keptOut of processes) keptOut.wantedByOthers('anna');
      await setImmediate();
    }
  };
  return { rows, process, after };
};

it('shares each second what is still wanted, and other processes count it until then', async () => {
  const { process, after } = inMemory();
  let wanted = 7;
  const [one, other] = [process(() => 0), process(() => wanted)];
  await after(1_000, one, other);
  other.note('ben');
  for (let second = 0; second < 30; second += 1) await after(1_000, one, other);
  expect(one.wantedByOthers('anna')).toEqual([7]);
  const elsewhere = (keptOut: typeof one, asker: string) => [...keptOut.wantedElsewhere(asker).values()];
  expect([elsewhere(one, 'ben'), elsewhere(other, 'ben')]).toEqual([[7], []]);
  expect(elsewhere(one, 'cleo')).toEqual([]);
  wanted = 0.5;
  for (let second = 0; second < 6; second += 1) await after(1_000, one, other);
  expect([one.wantedByOthers('anna'), elsewhere(one, 'ben')]).toEqual([[0.1], [0.1]]);
  await after(60_000, one, other);
  expect([one.wantedByOthers('anna'), elsewhere(one, 'ben')]).toEqual([[], []]);
});

it('finds what others want of one asker in the same time among few and among thousands', async () => {
  const times = [];
  for (const askers of [10, 3_000]) {
    const { process, after } = inMemory();
    const [one, other] = [process(() => 2), process(() => 2)];
    await after(1_000, one, other);
    for (let nth = 0; nth < askers; nth += 1) other.note(`asker ${nth}`);
    for (let second = 0; second < 3; second += 1) await after(1_000, one, other);
    expect([...one.wantedElsewhere('asker 7').values()]).toEqual([2]);
    vi.restoreAllMocks();
    const runs = Array.from({ length: 300 }, () => {
      const began = performance.now();
      for (let nth = 0; nth < 20; nth += 1) one.wantedElsewhere('asker 7');
      return performance.now() - began;
    });
    times.push(Math.min(...runs));
  }
  const [few = 0, many = 0] = times;
  expect(many / few).toBeLessThan(10);
});

it('counts little of what a process wanted that has shared nothing for five seconds', async () => {
  const { process, after } = inMemory();
  const [one, gone] = [process(() => 0), process(() => 9)];
  await after(1_000, one, gone);
  gone.note('ben');
  await after(1_000, one);
  await after(2_000, one);
  expect(one.wantedByOthers('anna')).toEqual([9]);
  await after(5_000, one);
  expect(one.wantedByOthers('anna')).toEqual([0.1]);
});

it.each([-20_000, 20_000])(
  'counts what a process wants whose clock differs by %i ms, for as long as it shares it',
  async (aheadMs) => {
    const { process, after } = inMemory();
    const [one, other] = [process(() => 0), process(() => 7, aheadMs)];
    await after(1_000, one, other);
    other.note('ben');
    for (let second = 0; second < 10; second += 1) await after(1_000, one, other);
    expect([...one.wantedElsewhere('ben').values()]).toEqual([7]);
    await after(1_000, one);
    await after(5_000, one);
    expect([...one.wantedElsewhere('ben').values()]).toEqual([0.1]);
  },
);

it('tells apart what several processes want of one asker', async () => {
  const { process, after } = inMemory();
  const [one, ...others] = [0, 5, 7].map((wanted) => process(() => wanted)) as [ReturnType<typeof process>];
  await after(1_000, one, ...others);
  for (const other of others as (typeof one)[]) other.note('ben');
  await after(1_000, one, ...others);
  expect([...one.wantedElsewhere('ben').values()].sort()).toEqual([5, 7]);
});

it('counts little of what a process wanted that has ended, in one that begins', async () => {
  const { process, after } = inMemory();
  const ended = process(() => 7);
  await after(1_000, ended);
  ended.note('ben');
  await after(1_000, ended);
  await after(6_000);
  const begun = process(() => 0);
  await after(1_000, begun);
  expect(begun.wantedByOthers('anna')).toEqual([0.1]);
});

it('shares a note once if nothing of it is wanted any more, and no old one', async () => {
  const { rows, process, after } = inMemory();
  const one = process(() => 0.5);
  await after(1_000, one);
  one.note('ben');
  expect([...rows.values()]).toMatchObject([{ at: NOW + 1_000, wanted: 0.5 }]);
  rows.clear();
  await after(2_000, one);
  await after(2_000, one);
  expect(rows.size).toBe(0);
});

it('makes a long list ten times a second at most', () => {
  const clock = { ms: NOW };
  const stillWants = vi.fn(() => 2);
  const keptOut = createKeptOut({ windowMs: MINUTE, now: () => clock.ms, shared: null, stillWants });
  for (let nth = 0; nth < 500; nth += 1) keptOut.note(`partner ${nth}`);
  for (let nth = 0; nth < 500; nth += 1) expect(keptOut.wantedByOthers(`partner ${nth}`)).toHaveLength(499);
  expect(stillWants).toHaveBeenCalledTimes(500);
  keptOut.note('ben');
  clock.ms += 100;
  expect(keptOut.wantedByOthers('ben')).toHaveLength(500);
  expect(keptOut.wantedByOthers('anna')).toHaveLength(501);
});

it('tells askers of several words apart, and asks no more while PostgreSQL does not answer', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => clock.mockRestore());
  const notes = new Map<string, { readonly at: number; readonly wanted: number }>();
  let asked = 0;
  let hangs = false;
  const answer = async <T>(value: T): Promise<T> => {
    asked += 1;
    return hangs ? new Promise<T>(() => undefined) : value;
  };
  const shared: SharedNotes = {
    share: (all) => {
      for (const { asker, ...note } of all) notes.set(asker, note);
      return answer(null);
    },
    refresh: () => answer([...notes].map(([asker, note]) => ({ asker, ...note }))),
  };
  const [one, other] = [aProcess(shared), aProcess(shared)];
  other.note('reveals of anna');
  other.note('reveals of ben');
  await setImmediate();
  clock.mockReturnValue(1_000);
  other.note('ben');
  one.wantedByOthers('cleo');
  await setImmediate();
  expect(one.wantedByOthers('reveals of ben')).toHaveLength(2);
  hangs = true;
  const before = asked;
  for (let second = 2; second < 10; second += 1) {
    clock.mockReturnValue(second * 1_000);
    one.note('anna');
    await setImmediate();
  }
  expect(asked - before).toBeLessThanOrEqual(2);
});

it('forgets old refusals with the next one, before the list is read', () => {
  const clock = { ms: NOW };
  const keptOut = createKeptOut({ windowMs: MINUTE, now: () => clock.ms, shared: null });
  for (let nth = 0; nth < 100; nth += 1) keptOut.note(`network ${nth}`);
  clock.ms += MINUTE;
  const forgotten = vi.spyOn(Map.prototype, 'delete');
  keptOut.note('ben');
  const names = forgotten.mock.calls.map(([name]) => name);
  forgotten.mockRestore();
  expect(names).toContain('network 0');
  expect(names).toContain('network 99');
});

describe('the rows in PostgreSQL', () => {
  it('are written also while another process deletes old ones', async () => {
    const notes = sharedNotes(pool, 'locked', MINUTE);
    const wanted = 1;
    await notes.share([{ asker: 'old', at: NOW - 3 * MINUTE, wanted }]);
    const client = await pool.connect();
    await client.query(`begin; select from work.kept_out where rate = 'locked' for update`);
    await notes.share([{ asker: 'ben', at: NOW, wanted }]);
    expect(await notes.refresh(NOW - MINUTE)).toEqual([{ asker: 'ben', at: NOW, wanted }]);
    await client.query('rollback');
    client.release();
  });

  it('are used for one rate, and only while they are neither old nor from a clock that was ahead', async () => {
    const notes = sharedNotes(pool, 'one', MINUTE);
    const wanted = Number.POSITIVE_INFINITY;
    await sharedNotes(pool, 'another', MINUTE).share([{ asker: 'anna', at: NOW, wanted }]);
    await notes.share([{ asker: 'ahead', at: NOW + 60 * MINUTE, wanted }]);
    await notes.share([{ asker: 'ben', at: NOW - MINUTE, wanted }]);
    await notes.share([{ asker: 'ben', at: NOW, wanted: 5 }]);
    expect(await notes.refresh(NOW - MINUTE)).toEqual([{ asker: 'ben', at: NOW, wanted: 5 }]);
    expect(await notes.refresh(NOW)).toEqual([]);
    await notes.share([{ asker: 'cleo', at: NOW + 2 * MINUTE, wanted }]);
    const { rows } = await pool.query(`select asker from work.kept_out where rate = 'one'`);
    expect(rows).toEqual([{ asker: 'cleo' }]);
  });
});
