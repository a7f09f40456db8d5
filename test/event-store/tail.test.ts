import pino from 'pino';
import { expect, it, vi } from 'vitest';
import type { Batch, FollowOptions, Position, RecordedEvent } from '../../event-store/port.ts';
import { Tail, type TailOptions } from '../../event-store/tail.ts';

const at = (position: number): Position => BigInt(position) as Position;
const recorded = (position: number, data: object = {}, expires_at?: string): RecordedEvent => ({
  position: at(position),
  stream: position % 2 === 0 ? `even-${position}` : `odd-${position}`,
  revision: 0,
  id: `id-${position}`,
  type: 'test.Happened.v1',
  data,
  metadata: {
    $correlationId: 'c',
    $causationId: 'c',
    at: '2026-01-01T00:00:00.000Z',
    ...(expires_at ? { expires_at } : {}),
  },
});

/** A log in memory that counts the events that each follower has read. */
const memoryLog = () => {
  const events: RecordedEvent[] = [];
  const reads: { readonly after: Position | null; readonly prefixes?: readonly string[]; read: number }[] =
    [];
  let wake: (() => void)[] = [];
  return {
    reads,
    append: (...more: RecordedEvent[]) => {
      events.push(...more);
      for (const one of wake) one();
      wake = [];
    },
    head: async () => events.at(-1)?.position ?? null,
    async *follow({ after, prefixes, signal, batchSize = 500 }: FollowOptions): AsyncGenerator<Batch> {
      const read = { after, ...(prefixes ? { prefixes } : {}), read: 0 };
      reads.push(read);
      let from = after;
      while (!signal.aborted) {
        const found = events.filter(({ position }) => from === null || position > from).slice(0, batchSize);
        const last = found.at(-1);
        if (last) {
          from = last.position;
          read.read += found.length;
          const events = found.filter(
            ({ stream }) => prefixes?.some((one) => stream.startsWith(one)) ?? true,
          );
          yield { events, position: last.position };
        } else
          await new Promise<void>((resolve) => {
            wake.push(resolve);
            signal.addEventListener('abort', () => resolve());
          });
      }
    },
  };
};

const opened = (log: ReturnType<typeof memoryLog>, over: Partial<TailOptions> = {}) =>
  new Tail({
    store: log,
    now: () => Date.parse('2026-06-01T00:00:00.000Z'),
    log: pino({ level: 'silent' }),
    ...over,
  });

/** The events that a follower receives up to a position. */
const collect = async (
  tail: ReturnType<typeof opened>,
  to: number,
  options: Partial<FollowOptions> = {},
): Promise<bigint[]> => {
  const ending = new AbortController();
  const seen: bigint[] = [];
  for await (const { events, position } of tail.follow({ after: null, signal: ending.signal, ...options })) {
    seen.push(...events.map((event) => event.position));
    if (position >= at(to)) ending.abort();
  }
  return seen;
};
const range = (from: number, to: number): bigint[] =>
  Array.from({ length: to - from + 1 }, (_, n) => BigInt(from + n));

it('reads the log once for all followers at its end', async () => {
  const log = memoryLog();
  log.append(...range(1, 10).map((position) => recorded(Number(position))));
  const tail = opened(log);
  const followers = Array.from({ length: 8 }, () => collect(tail, 30, { after: at(10) }));
  for (const position of range(11, 30)) {
    log.append(recorded(Number(position)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const seen of await Promise.all(followers)) expect(seen).toEqual(range(11, 30));
  expect(log.reads).toHaveLength(1);
  expect(log.reads[0]?.read).toBe(20);
  await tail.close();
});

it('lets a follower that lags catch up separately, without a gap or a repeat, and join the others', async () => {
  const log = memoryLog();
  log.append(...range(1, 4_000).map((position) => recorded(Number(position))));
  const tail = opened(log);
  const current = collect(tail, 4_100, { after: at(4_000) });
  const behind = collect(tail, 4_100);
  for (const position of range(4_001, 4_100)) {
    log.append(recorded(Number(position)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await current).toEqual(range(4_001, 4_100));
  expect(await behind).toEqual(range(1, 4_100));
  await tail.close();
});

it('sends a follower that is slower than its memory back to the store', async () => {
  const log = memoryLog();
  const tail = opened(log);
  const slow = tail.follow({ after: null, signal: new AbortController().signal });
  log.append(recorded(1));
  const seen = (await slow.next()).value?.events.map(({ position }: RecordedEvent) => position) ?? [];
  const fast = collect(tail, 20_000, { after: at(1) });
  log.append(...range(2, 20_000).map((position) => recorded(Number(position))));
  await fast;
  while (seen.at(-1) !== 20_000n)
    seen.push(...((await slow.next()).value?.events ?? []).map(({ position }: RecordedEvent) => position));
  expect(seen).toEqual(range(1, 20_000));
  expect(log.reads.length).toBeGreaterThan(1);
  await tail.close();
});

it('reads a few streams apart where the store selects them', async () => {
  const log = memoryLog();
  log.append(...range(1, 20_000).map((position) => recorded(Number(position))));
  const tail = opened(log);
  const ending = new AbortController();
  await tail.follow({ after: null, prefixes: ['even-'], signal: ending.signal }).next();
  expect(log.reads.map(({ prefixes }) => prefixes)).toContainEqual(['even-']);
  ending.abort();
  await tail.close();
});

it('filters events by prefix, hides expired ones, and moves the position past both', async () => {
  const log = memoryLog();
  log.append(recorded(1));
  const tail = opened(log);
  const expired = '2026-05-01T00:00:00.000Z';
  const even = collect(tail, 4, { after: at(1), prefixes: ['even-'] });
  const all = collect(tail, 4, { after: at(1), includeExpired: true });
  await new Promise((resolve) => setImmediate(resolve));
  log.append(recorded(2, {}, expired), recorded(3), recorded(4));
  expect(await even).toEqual([4n]);
  expect(await all).toEqual([2n, 3n, 4n]);
  await tail.close();
});

it('keeps events from a follower that gathers for longer, until a caller wants them at once', async () => {
  const log = memoryLog();
  const tail = opened(log);
  const ending = new AbortController();
  const gathering = tail.follow({ after: null, signal: ending.signal, gatherMs: () => 3_600_000 });
  const first = gathering.next();
  const others = collect(tail, 3);
  log.append(recorded(1));
  expect((await first).value?.position).toBe(at(1));
  let second: Batch | null = null;
  const next = gathering.next().then(({ value }) => {
    second = value ?? null;
  });
  log.append(recorded(2), recorded(3));
  expect(await others).toEqual(range(1, 3));
  expect(second).toBeNull();
  tail.hurry();
  await next;
  expect(second).toMatchObject({ position: at(3) });
  ending.abort();
  await tail.close();
});

it('reads on without gathering up to the position that a caller waits for', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  try {
    const log = memoryLog();
    const tail = opened(log);
    const seen = collect(tail, 3);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    log.append(recorded(1));
    await turn();
    tail.hurry(at(3));
    for (const position of [2, 3]) {
      await turn();
      log.append(recorded(position));
    }
    expect(await seen).toEqual(range(1, 3));
    await tail.close();
  } finally {
    vi.useRealTimers();
  }
});

it('sets no timer for a gathering that its follower has outlasted', async () => {
  const log = memoryLog();
  log.append(recorded(1));
  const tail = opened(log);
  const ending = new AbortController();
  const timers = vi.spyOn(globalThis, 'setTimeout');
  for await (const { position } of tail.follow({
    after: null,
    signal: ending.signal,
    gatherMs: () => 20,
  })) {
    if (position === at(2)) ending.abort();
    else {
      await new Promise((resolve) => setTimeout(resolve, 40));
      log.append(recorded(2));
    }
  }
  const delays = timers.mock.calls.map(([, ms]) => ms ?? 0);
  timers.mockRestore();
  await tail.close();
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
});
