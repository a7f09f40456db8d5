import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { makeTracker } from '../support/tracking.ts';

interface Item {
  readonly name: string;
  readonly request: {
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    readonly auth?: { readonly type: 'noauth' };
    readonly url: { readonly raw: string; readonly variable: readonly { key: string; value: string }[] };
    readonly header: readonly { readonly key: string; readonly value: string }[];
    readonly body?: { readonly raw: string };
  };
}

let api: TestApi;
let key: Key;
let items: Item[];
let values: Record<string, string>;
beforeAll(async () => {
  api = await startApi();
  key = await api.key();
  const collection = (await api.app.inject('/docs/collection.json')).json();
  items = collection.item.flatMap(({ item }: { item: Item[] }) => item);
  values = Object.fromEntries(collection.variable.map((of: { key: string }) => [of.key, randomUUID()]));
  values.tracker_id = await makeTracker(api, key);
});
afterAll(() => api.close());

const filled = (text: string): string =>
  text.replaceAll(/\{\{(\$?\w+)\}\}/g, (_, name) => (name === '$guid' ? randomUUID() : (values[name] ?? '')));

it('the collection has every operation of the document once', async () => {
  const { paths } = (await api.app.inject('/openapi.json')).json();
  const operations = Object.values(paths).flatMap((path) => Object.values(path as object));
  expect(items.map(({ name }) => name).sort()).toEqual(operations.map(({ summary }) => summary).sort());
});

it('every request of the collection is understood as it stands, with its variables filled in', async () => {
  const codes: Record<string, string> = {};
  const ending = ({ request: { method, url } }: Item) => method === 'DELETE' || url.raw.endsWith('/delete');
  for (const { name, request } of [...items].sort((a, b) => Number(ending(a)) - Number(ending(b)))) {
    const path = request.url.raw.replace('{{base_url}}', '');
    const variables = Object.fromEntries(request.url.variable.map((of) => [of.key, of.value]));
    const answer = await api.inject(request.auth ? null : key, {
      method: request.method,
      url: filled(path.replaceAll(/:(\w+)/g, (_, part) => variables[part] ?? '')),
      headers: Object.fromEntries(request.header.map((of) => [of.key.toLowerCase(), filled(of.value)])),
      ...(request.body ? { payload: filled(request.body.raw) } : {}),
    });
    if (answer.statusCode >= 400) codes[name] = answer.json().error.code;
  }
  // They are about what does not exist here, and a browser would be on the service's own host.
  expect([...new Set(Object.values(codes))].sort()).toEqual([
    'domain_not_found',
    'reveal_not_found',
    'session_not_found',
    'tracker_deleted',
    'untrusted_collector',
    'webhook_not_found',
  ]);
});
