/**
 * Three nodes whose leader is killed and frozen. Runs where `EVENTSTORE_URL` names three nodes without TLS and `EVENTSTORE_CLUSTER` a
 * command as the storm's `--cluster-command` (docs/reliability.md); some three minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { createCluster } from '../storm/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { event, unique } from './suite/context.ts';

const { EVENTSTORE_URL: url, EVENTSTORE_CLUSTER: command } = process.env;
const WRITERS = 8;

let opened: EventStore[] = [];
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  opened = [];
});

const open = (options = '', deadlineMs = 4_000): EventStore => {
  const store = createEventStoreDb({ url: `${url}${options}`, now: Date.now, deadlineMs });
  opened.push(store);
  return store;
};

describe.skipIf(url === undefined || command === undefined)('on three nodes of EventStoreDB', () => {
  const cluster = createCluster(url ?? '', command ?? '');
  const leaderNow = async (except: number | null = null): Promise<number> =>
    (await eventually(
      'a node leads',
      () => cluster.leader(),
      (leader) => leader !== null && leader !== except,
      30_000,
    )) as number;

  it('appends go on within five seconds of the election after the leader was killed', async () => {
    const store = open();
    await store.append(unique(), 'no_stream', [event()]);
    const killed = await leaderNow();
    await cluster.control('kill', killed);
    const elected = leaderNow(killed).then(() => performance.now());
    const append = () =>
      store.append(unique(), 'no_stream', [event()]).then(
        () => true,
        () => false,
      );
    await eventually('an append is acknowledged', append, Boolean, 30_000);
    const tookMs = performance.now() - (await elected);
    await cluster.control('start', killed);
    expect(tookMs).toBeLessThan(5_000);
  }, 60_000);

  it.each([1_500, 4_000, 15_000])(
    'a reader sees what another process was acknowledged, while the leader is frozen for %i ms and wakes',
    async (ms) => {
      // The writer finds the next leader at once; the connection of the reader lives on, and the old leader answers it when it wakes.
      const writer = open('&keepAliveInterval=200&keepAliveTimeout=300');
      const reader = open('&keepAliveInterval=-1', 20_000);
      const stop = new AbortController();
      const missed: string[] = [];
      let [acknowledged, checked] = [0, 0];
      let reads = 0;
      const checking = new Set<Promise<void>>();
      const check = async (stream: string, position: Position): Promise<void> => {
        reads += 1;
        const head = reader.head().catch(() => null);
        const read = await Array.fromAsync(reader.readStream(stream)).catch(() => null);
        if (read?.length === 0) missed.push(stream);
        const at = await head;
        if (at !== null && at < position) missed.push(`head ${at}`);
        if (read !== null && at !== null) checked += 1;
        reads -= 1;
      };
      const write = async (): Promise<void> => {
        while (!stop.signal.aborted) {
          const stream = unique();
          const appended = await writer.append(stream, 'no_stream', [event()]).catch(() => null);
          if (appended === null) continue;
          acknowledged += 1;
          checking.add(check(stream, appended.position ?? (0n as Position)));
          // A frozen leader holds up the reads, not the writers.
          if (reads > WRITERS * 2) await sleep(50);
        }
      };
      const writing = Array.from({ length: WRITERS }, write);
      await sleep(2_000);
      const frozen = await leaderNow();
      await cluster.control('freeze', frozen);
      await sleep(ms);
      await cluster.control('thaw', frozen);
      await sleep(6_000);
      stop.abort();
      await Promise.all(writing);
      await Promise.all(checking);
      expect({ missed, isBusy: checked > 500 }).toEqual({ missed: [], isBusy: true });
      expect(acknowledged).toBeGreaterThan(500);
    },
    90_000,
  );
});
