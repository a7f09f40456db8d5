import { expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { Follower } from '../../event-store/postgres/follower.ts';
import { eventually } from '../support/eventually.ts';

const EVENTS = 400;
const row = (position: number) => ({
  position: String(position),
  stream: `stream-${position}`,
  revision: 0,
  id: `id-${position}`,
  type: 'test.Happened.v1',
  data: {},
  metadata: {},
});

/** A pool whose reads time out above a number of events. */
const slowPool = (most: number) => {
  const asked: number[] = [];
  return {
    asked,
    query: async ({ values: [after, events] }: { values: [bigint, number] }) => {
      asked.push(events);
      if (events > most) throw new Error('Query read timeout');
      const rows = Array.from({ length: EVENTS }, (_, n) => row(n + 1));
      return { rows: rows.filter(({ position }) => BigInt(position) > after).slice(0, events) };
    },
  };
};

it('asks for fewer events after a read that timed out, logs it, and reaches the end without a gap', async () => {
  const pool = slowPool(40);
  const stalls: (Position | null)[] = [];
  const follower = new Follower({
    url: 'postgresql://127.0.0.1:1/none',
    pool: pool as never,
    now: () => 0,
    hasOtherListeners: () => false,
    onStall: (_error, after) => stalls.push(after),
  });
  const ending = new AbortController();
  const seen: bigint[] = [];
  for await (const { events } of follower.follow({ after: null, signal: ending.signal })) {
    seen.push(...events.map(({ position }) => position));
    if (seen.length >= EVENTS) ending.abort();
  }
  expect(seen).toEqual(Array.from({ length: EVENTS }, (_, n) => BigInt(n + 1)));
  expect(pool.asked[0]).toBe(500);
  expect(stalls.length).toBeGreaterThan(0);
  // The size grows after each success, so at most about every second read is refused.
  expect(stalls.length).toBeLessThan(pool.asked.length / 2 + 2);
  await follower.close();
});

it('reads again at once only after a read that its size ended', async () => {
  const stored = [1, 2, 3, 4, 5, 6].map(row);
  const pages: string[] = [];
  let bytesOfLast = '0';
  const query = async ({ values: [after, events] }: { values: [bigint, number] }) => {
    const rows = stored.filter(({ position }) => BigInt(position) > after).slice(0, events);
    pages.push(rows.map(({ position }) => position).join(' '));
    return { rows: rows.map((one) => ({ ...one, bytes: bytesOfLast })) };
  };
  const follower = new Follower({
    url: 'postgresql://127.0.0.1:1/none',
    pool: { query } as never,
    now: () => 0,
    hasOtherListeners: () => false,
    onStall: () => undefined,
  });
  const ending = new AbortController();
  const batches = follower.follow({ after: null, batchSize: 3, signal: ending.signal });
  const commit = (position: number): void => {
    stored.push(row(position));
    follower.committed();
  };
  await batches.next();
  await batches.next();
  const seventh = batches.next();
  await eventually('the end is read', () => pages.length === 3);
  commit(7);
  await seventh;
  const eighth = batches.next();
  bytesOfLast = String(2 ** 30);
  commit(8);
  await eighth;
  const ended = batches.next();
  await eventually('more is looked for', () => pages.length === 6);
  expect(pages).toEqual(['1 2 3', '4 5 6', '', '7', '8', '']);
  ending.abort();
  await ended;
  await follower.close();
});
