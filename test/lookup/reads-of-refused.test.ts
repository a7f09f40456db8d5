import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EventStore } from '../../event-store/port.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const reads = { heads: 0, intakes: 0, held: 0 };
/** Streams of addresses are read once it resolves. */
let released = Promise.resolve();
const counting = (store: EventStore): EventStore => ({
  ...store,
  head: () => {
    reads.heads += 1;
    return store.head();
  },
  readStream: async function* (stream, options) {
    if (stream.startsWith('intake-')) reads.intakes += 1;
    if (stream.startsWith('enrichment-')) {
      reads.held += 1;
      await released;
    }
    yield* store.readStream(stream, options);
  },
});

let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ aroundStore: counting });
  key = await api.key({ pending_enrichments: 0, requests_per_second: 1_000 });
});
afterAll(() => api.close());

it('lookups that a partner has no room for share the reads that refuse them', async () => {
  const post = (nth: number) =>
    api.inject(key, { method: 'POST', url: '/v1/lookup', payload: { ip: `9.9.9.${nth}` } });
  await post(0);
  Object.assign(reads, { heads: 0, intakes: 0 });
  const answers = await Promise.all(Array.from({ length: 100 }, (_, nth) => post(nth)));
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([429]));
  expect(reads.heads).toBeLessThan(20);
  expect(reads.intakes).toBeLessThan(20);
});

it('a partner whose reads take long has eight at a time, beside those of others', async () => {
  const held = Promise.withResolvers<void>();
  released = held.promise;
  reads.held = 0;
  const other = await api.key();
  const post = (by: Key, ip: string) =>
    api.inject(by, { method: 'POST', url: '/v1/lookup', payload: { ip } });
  const many = Array.from({ length: 30 }, (_, nth) => post(key, `9.9.8.${nth}`));
  await eventually('the partner reads', () => reads.held === 8);
  const others = post(other, '9.9.7.7');
  await eventually('the other partner reads too', () => reads.held === 9);
  held.resolve();
  expect((await others).statusCode).toBe(202);
  expect(new Set((await Promise.all(many)).map(({ statusCode }) => statusCode))).toEqual(new Set([429]));
});
