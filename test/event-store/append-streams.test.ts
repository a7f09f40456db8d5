import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.ts';

const databases: TestDatabase[] = [];
const clients: pg.Client[] = [];

beforeAll(async () => {
  for (let nth = 0; nth < 2; nth += 1) {
    const database = await testDatabase();
    databases.push(database);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    clients.push(client);
  }
});
afterAll(async () => {
  for (const client of clients) await client.end();
  for (const database of databases) await database.drop();
});

interface Append {
  readonly stream: string;
  readonly expected: number;
  readonly ids: readonly string[];
}

/** Of a linear congruential generator, so that a failure can be repeated. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

async function append(client: pg.Client, fn: 'append_batch' | 'append_streams', batch: readonly Append[]) {
  const ids = batch.flatMap((one) => one.ids);
  const values: unknown[] = [
    batch.map(({ stream }) => stream),
    batch.map(({ expected }) => expected),
    batch.map((one) => one.ids.length),
    ids,
    ids.map(() => 'a.Test.v1'),
    ids.map((id) => JSON.stringify({ id })),
    ids.map(() => '{}'),
  ];
  if (fn === 'append_streams') {
    values.push(batch.flatMap((one, index) => one.ids.map(() => index + 1)));
    values.push(batch.flatMap((one) => one.ids.map((_, index) => index + 1)));
  }
  const text = `select outcome, revision, position is not null as is_known from eventlog.${fn}(${values.map((_, index) => `$${index + 1}`)})`;
  return (await client.query(text, values)).rows;
}

const log = async (client: pg.Client) => {
  const { rows: events } = await client.query(
    'select stream, revision, id, data from eventlog.event order by position',
  );
  const { rows: streams } = await client.query('select name, revision from eventlog.stream order by name');
  return { events, streams };
};

it('appends to different streams at once as it does one by one: revisions, repeats, conflicts and deleted streams', async () => {
  const pick = numbers(7);
  const known: Append[] = [];
  const outcomes = new Set<string>();
  for (let round = 0; round < 200; round += 1) {
    const streams = new Set(Array.from({ length: 1 + pick(6) }, () => `s-${pick(12)}`));
    const batch = [...streams].map((stream): Append => {
      const before = known.filter((one) => one.stream === stream).at(-1);
      const expected = [-1, -2, -4, pick(8), pick(8)][pick(5)] as number;
      const fresh = Array.from({ length: 1 + pick(3) }, () => randomUUID());
      if (before === undefined || pick(4) > 0) return { stream, expected, ids: fresh };
      // A repeat: whole, with its own expectation or another, in part, or with more beside it.
      const repeats = [before, { ...before, expected }, { ...before, ids: before.ids.slice(0, 1) }];
      return [...repeats, { ...before, ids: [...before.ids, ...fresh] }][pick(4)] as Append;
    });
    if (round === 100) {
      for (const client of clients)
        await client.query(`update eventlog.stream set expired = true where name in ('s-1', 's-2')`);
    }
    const [first, second] = await Promise.all([
      append(clients[0] as pg.Client, 'append_batch', batch),
      append(clients[1] as pg.Client, 'append_streams', batch),
    ]);
    expect(second, JSON.stringify(batch)).toEqual(first);
    for (const [index, { outcome }] of first.entries()) {
      outcomes.add(outcome);
      if (outcome === 'appended') known.push(batch[index] as Append);
    }
  }
  expect([...outcomes].toSorted()).toEqual(['appended', 'conflict', 'expired']);
  const [one, other] = await Promise.all(clients.map(log));
  expect(other).toEqual(one);
});
