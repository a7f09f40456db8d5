import { expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { nextTurn } from '../../platform/clock/waiting.ts';
import { coalesceNext } from '../../platform/limits/coalesce.ts';

/** A store whose answers the test gives one by one. */
const aStore = () => {
  const asked: PromiseWithResolvers<Position | null>[] = [];
  const head = () => {
    const one = Promise.withResolvers<Position | null>();
    asked.push(one);
    return one.promise;
  };
  return { head, asked };
};

it('asks once for all callers that arrive during a query, and only after it has ended', async () => {
  const store = aStore();
  const head = coalesceNext(store.head);
  const first = head();
  await nextTurn();
  const others = Array.from({ length: 100 }, () => head());
  expect(store.asked).toHaveLength(1);
  store.asked[0]?.resolve(1n as Position);
  expect(await first).toBe(1n);
  expect(store.asked).toHaveLength(2);
  store.asked[1]?.resolve(2n as Position);
  // An event may have been appended after the first query left.
  expect(new Set(await Promise.all(others))).toEqual(new Set([2n]));
  expect(store.asked).toHaveLength(2);
});

it('asks again after a failed query, which fails only its own callers', async () => {
  const store = aStore();
  const head = coalesceNext(store.head);
  const first = head();
  await nextTurn();
  const second = head();
  store.asked[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  store.asked[1]?.resolve(null);
  expect(await second).toBeNull();
});

it('asks once for all callers of one moment', async () => {
  const store = aStore();
  const head = coalesceNext(store.head);
  const callers = [head(), head()];
  await nextTurn();
  store.asked[0]?.resolve(1n as Position);
  expect(await Promise.all(callers)).toEqual([1n, 1n]);
  expect(store.asked).toHaveLength(1);
});
