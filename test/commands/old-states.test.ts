/** States that a process has from before another process went on. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createBatcher } from '../../commands/batcher.ts';
import { accept, type Decider, refuse } from '../../domain/kernel/decider.ts';
import type { EventStore, ReadOptions } from '../../event-store/port.ts';

type Event =
  | { type: 'test.Added.v1'; data: { id: number } }
  | { type: 'test.Removed.v1'; data: { id: number } }
  | { type: 'test.Part.v1'; data: { part: number; parts: number; ids: number[] } };
type State = ReadonlySet<number>;

const decider: Decider<State, { readonly add: number }, Event, 'full'> = {
  initial: new Set(),
  decide: ({ add }, state) =>
    state.size > 0 ? refuse('full') : accept([{ type: 'test.Added.v1', data: { id: add } }]),
  evolve: (state, { type, data }) => {
    if (type === 'test.Removed.v1') return new Set([...state].filter((id) => id !== data.id));
    return new Set([...state, ...(type === 'test.Added.v1' ? [data.id] : data.ids)]);
  },
};
const aggregate = {
  schemas: {
    'test.Added.v1': z.object({ id: z.int() }),
    'test.Removed.v1': z.object({ id: z.int() }),
    'test.Part.v1': z.object({ part: z.int(), parts: z.int(), ids: z.array(z.int()) }),
  },
  decider,
  snapshot: (state: State): Event[] => [
    { type: 'test.Part.v1', data: { part: 1, parts: 1, ids: [...state] } },
  ],
  partOf: (event: Event) => (event.type === 'test.Part.v1' ? event.data : null),
};

const added = (id: number): Event => ({ type: 'test.Added.v1', data: { id } });
const removed = (id: number): Event => ({ type: 'test.Removed.v1', data: { id } });
const part = (...ids: number[]): Event => ({ type: 'test.Part.v1', data: { part: 1, parts: 1, ids } });

/** A stream to which other processes append, and a batcher that has its state after the first event. */
const openOld = async () => {
  const stream: Event[] = [added(1)];
  let first = 0;
  let read = 0;
  const readStream = async function* (_: string, { direction, from = 0, limit }: ReadOptions = {}) {
    const all = stream.map((event, revision) => ({ ...event, revision })).slice(first);
    const asked =
      direction === 'backwards' ? all.toReversed() : all.filter(({ revision }) => revision >= from);
    for (const event of asked.slice(0, limit)) {
      read += 1;
      yield event;
    }
  };
  const batcher = createBatcher({ readStream } as unknown as EventStore, aggregate);
  const ids = () => batcher.readState('test-stream', (state) => [...state]);
  expect(await ids()).toEqual([1]);
  read = 0;
  return { batcher, stream, ids, read: () => read, truncate: () => (first = stream.length - 1) };
};

it('all callers at one time read what has been appended since in two reads', async () => {
  const { batcher, stream, read } = await openOld();
  for (let nth = 0; nth < 450; nth += 1) stream.push(removed(1), added(1));
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => batcher.dryRun('test-stream', { add: 2 })),
  );
  expect(new Set(answers)).toEqual(new Set(['full']));
  expect(read()).toBeLessThanOrEqual(2 * 900);
});

it('an old state is read from the newest snapshot on', async () => {
  const { stream, ids, read } = await openOld();
  for (let nth = 0; nth < 10_000; nth += 1)
    stream.push(removed(1), added(1), ...(nth % 500 ? [] : [part(1)]));
  stream.push(removed(1), added(7));
  expect(await ids()).toEqual([7]);
  expect(read()).toBeLessThanOrEqual(2_500);
});

it('an old state is not the base of events behind a truncated part of the stream', async () => {
  const { stream, ids, truncate } = await openOld();
  stream.push(removed(1), added(2), part(2));
  truncate();
  expect(await ids()).toEqual([2]);
});
