import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EventStore } from '../../event-store/port.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';

const reads = { heads: 0, intakes: 0 };
const counting = (store: EventStore): EventStore => ({
  ...store,
  head: () => {
    reads.heads += 1;
    return store.head();
  },
  readStream: (stream, options) => {
    if (stream.startsWith('intake-')) reads.intakes += 1;
    return store.readStream(stream, options);
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
