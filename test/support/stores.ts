import { randomUUID } from 'node:crypto';
import { describe, it } from 'vitest';
import type { EventStore } from '../../event-store/port.ts';
import { until } from './until.ts';

const { EVENTSTORE_URL } = process.env;

/** The environment variables of a service on one store. */
export type StoreEnv = Readonly<Record<string, string>>;

/**
 * Describes tests on PostgreSQL and on the EventStoreDB that `EVENTSTORE_URL` names; without it they are skipped
 * by name.
 */
export const describeOnStores = (what: string, body: (env: StoreEnv) => void): void => {
  describe(`${what} on PostgreSQL`, () => body({}));
  const other = `${what} on EventStoreDB, where EVENTSTORE_URL names one`;
  if (EVENTSTORE_URL === undefined) describe(other, () => it.skip('is skipped', () => undefined));
  else describe(other, () => body({ EVENTSTORE_URL }));
};

/** Chunks up to this size are filled by a test, so that the node can scavenge them: start it with `--chunk-size 2097152`. */
const LARGEST_CHUNK = 4_194_304;
const FILLER_BYTES = 500_000;

/**
 * Completes the chunk that an EventStoreDB node writes to, and scavenges all that are complete.
 * @returns false if the node's chunks are too large for a test
 */
export const scavenge = async (url: string, store: EventStore): Promise<boolean> => {
  const node = `http://${new URL(url).host}`;
  const ask = async (path: string, method = 'GET') =>
    (await fetch(`${node}${path}`, { method, headers: { accept: 'application/json' } })).json();
  const options = (await ask('/info/options')) as { readonly name: string; readonly value: string }[];
  const chunk = Number(options.find(({ name }) => name === 'ChunkSize')?.value);
  if (!(chunk <= LARGEST_CHUNK)) return false;
  const data = { filler: 'x'.repeat(FILLER_BYTES) };
  const metadata = { $correlationId: 'a-test', $causationId: 'a-test', at: new Date().toISOString() };
  for (let bytes = 0; bytes <= chunk; bytes += FILLER_BYTES) {
    const event = { id: randomUUID(), type: 'test.Filled.v1', data, metadata };
    await store.append(`filler-${randomUUID()}`, 'no_stream', [event]);
  }
  await ask('/admin/scavenge', 'POST');
  await until('the scavenge has ended', async () => {
    const current = (await ask('/admin/scavenge/current')) as { readonly scavengeId: string };
    return current.scavengeId === '';
  });
  return true;
};
