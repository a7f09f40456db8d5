import { randomUUID } from 'node:crypto';
import type { NetConnectOpts } from 'node:net';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type {
  Batch,
  EventStore,
  FollowOptions,
  NewEvent,
  Position,
  RecordedEvent,
} from '../../../event-store/port.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

export interface OpenOptions {
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly now?: () => number;
  readonly deadlineMs?: number;
}

/** A server with an event log, and how to open the store under test on it. */
export interface TestedServer {
  /** Where the server listens: a host and port, or the path of a Unix socket. */
  readonly address: NetConnectOpts;
  /** Opens a store that connects to this port of 127.0.0.1 or, without one, to the server itself. */
  open(options: Required<OpenOptions> & { readonly proxyPort?: number }): EventStore;
  stop(): Promise<void>;
}

export interface SuiteContext {
  /** Opens a store that is closed after the test. */
  open(options?: OpenOptions): EventStore;
  /** Opens a store behind a proxy that can break its connections; both are closed after the test. */
  openBehindProxy(options?: OpenOptions): Promise<{ store: EventStore; proxy: TcpProxy }>;
}

const DEADLINE_MS = 4_000;

export const suiteContext = (start: () => Promise<TestedServer>): SuiteContext => {
  let server: TestedServer;
  let opened: { close(): Promise<void> }[] = [];
  beforeAll(async () => {
    server = await start();
  }, 120_000);
  afterEach(async () => {
    const closing = opened.reverse();
    opened = [];
    for (const each of closing) await each.close();
  }, 30_000);
  afterAll(() => server?.stop());

  const keep = <T extends { close(): Promise<void> }>(resource: T): T => {
    let closed: Promise<void> | null = null;
    const close = (): Promise<void> => {
      closed ??= resource.close();
      return closed;
    };
    const kept = { ...resource, close };
    opened.push(kept);
    return kept;
  };
  const defaults = { now: Date.now, deadlineMs: DEADLINE_MS };
  return {
    open: (options) => keep(server.open({ ...defaults, ...options })),
    openBehindProxy: async (options) => {
      const proxy = keep(await startTcpProxy(server.address));
      return { store: keep(server.open({ ...defaults, ...options, proxyPort: proxy.port })), proxy };
    },
  };
};

/** Returns a stream name or prefix that no other test or run uses. */
export const unique = (kind = 'contract'): string => `${kind}-${randomUUID()}`;

/** Returns an event with a new id and the given fields. */
export const event = (
  given: { data?: object; metadata?: object; id?: string; type?: string } = {},
): NewEvent => ({
  id: given.id ?? randomUUID(),
  type: given.type ?? 'contract.Tested.v1',
  data: given.data ?? { tested: true },
  metadata: {
    $correlationId: 'the-request',
    $causationId: 'the-cause',
    at: '2030-01-02T03:04:05.678Z',
    ...given.metadata,
  },
});

export const events = (count: number): NewEvent[] =>
  Array.from({ length: count }, (_, n) => event({ data: { n } }));

export const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

export const ids = (list: readonly { readonly id: string }[]): string[] => list.map(({ id }) => id);

/** Follows until the condition holds for all batches so far and returns them. The test's time limit bounds it. */
export const followUntil = async (
  store: EventStore,
  options: Omit<FollowOptions, 'signal'>,
  done: (batches: readonly Batch[]) => boolean | Promise<boolean>,
): Promise<Batch[]> => {
  const stop = new AbortController();
  const batches: Batch[] = [];
  for await (const batch of store.follow({ ...options, signal: stop.signal })) {
    batches.push(batch);
    if (await done(batches)) stop.abort();
  }
  return batches;
};

export const eventsIn = (batches: readonly Batch[]): RecordedEvent[] =>
  batches.flatMap((batch) => batch.events);

/** Expects positions to rise strictly, over events and batches, from the given one. */
export const expectRising = (batches: readonly Batch[], after: Position | null): void => {
  let last = after ?? -1n;
  for (const { events: batch, position } of batches) {
    for (const each of batch) {
      expect(each.position).toBeGreaterThan(last);
      last = each.position;
    }
    expect(position).toBeGreaterThanOrEqual(last);
    last = position;
  }
};

/** Returns the error that the work rejects with. */
export const refusal = async (work: Promise<unknown>): Promise<Error> => {
  const outcome = await work.then(
    () => null,
    (error: unknown) => error,
  );
  if (!(outcome instanceof Error)) throw new Error('this was to be refused');
  return outcome;
};
