import { Readable } from 'node:stream';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { describe, expect, it } from 'vitest';
import { createReader } from '../../event-store/eventstoredb/read.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createStreamReader } from '../../event-store/postgres/read-stream.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const EVENTS = 10_000;
const now = () => NOW;
/** All events but the last of the stream are hidden. */
const metadataOf = (revision: number) =>
  revision === EVENTS - 1 ? {} : { expires_at: '2026-02-01T00:00:00.000Z' };
const revisions = (from: number, count: number): number[] =>
  Array.from({ length: Math.max(0, Math.min(count, EVENTS - from)) }, (_, index) => from + index);

const onPostgres = (): { reads: () => number; readStream: EventStore['readStream'] } => {
  let reads = 0;
  const query = async (_name: string, _text: string, values: unknown[]) => {
    reads += 1;
    const [, from, size] = values as [string, number, number];
    return revisions(from, size).map((revision) => ({
      position: revision,
      revision,
      metadata: metadataOf(revision),
    }));
  };
  return { reads: () => reads, readStream: createStreamReader(query, now) };
};

const onEventStoreDb = (): { reads: () => number; readStream: EventStore['readStream'] } => {
  let reads = 0;
  const readStream = (
    _stream: string,
    { fromRevision, maxCount }: { fromRevision: unknown; maxCount: number },
  ) => {
    reads += 1;
    const from = typeof fromRevision === 'bigint' ? Number(fromRevision) : 0;
    return Readable.from(
      revisions(from, maxCount).map((revision) => ({
        event: {
          revision: BigInt(revision),
          position: { commit: BigInt(revision) },
          metadata: metadataOf(revision),
        },
      })),
    );
  };
  const client = { readStream } as unknown as EventStoreDBClient;
  const reader = createReader(client, now, 1_000, new AbortController().signal);
  return { reads: () => reads, readStream: reader.readStream };
};

describe.each([
  ['PostgreSQL', onPostgres, 1_000],
  ['EventStoreDB', onEventStoreDb, 500],
])('the first event of a stream with ten thousand hidden ones on %s', (_store, open, page) => {
  it('is found by reading whole pages', async () => {
    const { reads, readStream } = open();
    const found = await Array.fromAsync(readStream('tab-1', { limit: 1 }));
    expect(found.map(({ revision }) => revision)).toEqual([EVENTS - 1]);
    expect(reads()).toBeLessThanOrEqual(1 + EVENTS / page);
  });
});
