import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { PIXEL_FILE } from '../../web/pixel/build.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';

/** The service's own, as `startApi` names it. */
const HOST = 'doorplate.test';

let api: TestApi;
let key: Key;
let tracker: string;
beforeAll(async () => {
  api = await startApi();
  key = await api.key();
  tracker = await newTracker();
});
afterAll(() => api.close());

const newTracker = async (): Promise<string> => {
  const payload = { name: 'A website', origins: ['https://www.example.com'] };
  return (await api.inject(key, { method: 'POST', url: '/v1/trackers', payload })).json().id;
};
const ask = (query: string, headers = {}, method: 'GET' | 'HEAD' = 'GET') =>
  api.inject(null, { method, url: `/tracking/a.js${query}`, headers: { host: HOST, ...headers } });
const refusalOf = (answer: LightMyRequestResponse) => [answer.statusCode, answer.json().error.code];

describe('GET /tracking/a.js', () => {
  it('is the pixel, for any page, kept for a short time', async () => {
    const answer = await ask(`?tracker_id=${tracker}`);

    expect(answer.statusCode).toBe(200);
    expect(answer.rawPayload.equals(readFileSync(PIXEL_FILE))).toBe(true);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=300',
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding, origin',
      etag: expect.stringMatching(/^"[\w-]{22}"$/),
      'content-length': String(answer.rawPayload.length),
    });
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  it('is the same for every tracker, and compressed for who takes it', async () => {
    const [one, other, small] = await Promise.all([
      ask(`?tracker_id=${tracker}`),
      ask(`?tracker_id=${(await newTracker()).toUpperCase()}`),
      ask(`?tracker_id=${tracker}`, { 'accept-encoding': 'gzip, br' }),
    ]);

    expect(other.headers.etag).toBe(one.headers.etag);
    expect(other.body).toBe(one.body);
    expect(gunzipSync(small.rawPayload).toString()).toBe(one.body);
    expect(small.headers.etag).not.toBe(one.headers.etag);
  });

  it('is not sent again to who knows it, nor to HEAD', async () => {
    const { headers } = await ask(`?tracker_id=${tracker}`);
    const again = await ask(`?tracker_id=${tracker}`, { 'if-none-match': String(headers.etag) });
    const changed = await ask(`?tracker_id=${tracker}`, { 'if-none-match': '"of before"' });
    const head = await ask(`?tracker_id=${tracker}`, {}, 'HEAD');

    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', headers.etag]);
    expect(again.headers['cache-control']).toBe('public, max-age=300');
    expect(changed.statusCode).toBe(200);
    expect([head.statusCode, head.body, head.headers.etag]).toEqual([200, '', headers.etag]);
  });

  it('may be read, and so pinned to a digest, by the pages of the tracker alone', async () => {
    const allowed = async (origin: string) =>
      (await ask(`?tracker_id=${tracker}`, { origin })).headers['access-control-allow-origin'];

    expect(await allowed('https://www.example.com')).toBe('https://www.example.com');
    expect(await allowed('https://elsewhere.example.com')).toBeUndefined();
    expect(await allowed('null')).toBeUndefined();
  });

  test.each<[string, number, string]>([
    ['', 400, 'invalid_query'],
    ['?', 400, 'invalid_query'],
    ['?id=%', 400, 'invalid_query'],
    ['?tracker_id=%&x=1', 400, 'invalid_query'],
    ['?tracker_id=%&tracker_id=%', 400, 'invalid_query'],
    ['?Tracker_id=%', 400, 'invalid_query'],
    ['?tracker_id=', 400, 'invalid_tracker'],
    ['?tracker_id=%0', 400, 'invalid_tracker'],
    [`?tracker_id=${randomUUID()}`, 404, 'tracker_not_found'],
  ])('refuses the query %j with %i %s', async (query, status, code) => {
    const answer = await ask(query.replaceAll('%', tracker));

    expect(refusalOf(answer)).toEqual([status, code]);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  it('is there for a disabled tracker, and gone with a deleted one', async () => {
    const id = await newTracker();
    await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${id}` });
    const disabled = await ask(`?tracker_id=${id}`);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${id}/delete` });
    const deleted = await ask(`?tracker_id=${id}`);

    expect(disabled.statusCode).toBe(200);
    expect(refusalOf(deleted)).toEqual([410, 'tracker_deleted']);
    expect(deleted.headers['cache-control']).toBe('no-store');
  });

  it('is not served where a visit would not be collected', async () => {
    for (const host of ['elsewhere.test', 'doorplate.test:8443', 'visits.example.com']) {
      const answer = await ask(`?tracker_id=${tracker}`, { host });
      expect(refusalOf(answer)).toEqual([403, 'untrusted_collector']);
      expect(answer.headers['cache-control']).toBe('no-store');
    }
  });

  it('takes no other method', async () => {
    const answer = await api.inject(null, { method: 'POST', url: `/tracking/a.js?tracker_id=${tracker}` });

    expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});
