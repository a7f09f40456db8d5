import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { readInstallEvidence, readLastVisitHour } from '../../queries/trackers/install-evidence.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { collect, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({
    clock,
    env: { CAPTURES_PER_SECOND_PER_TRACKER: '7', TRUSTED_PROXIES: '127.0.0.1/32' },
  });
  key = await api.key();
});
afterAll(() => api.close());
beforeEach(() => clock.advance(2_000));

const pool = () => api.runtime.pool;
const evidenceOf = async (tracker: string) => {
  await api.runtime.evidence.flush();
  return readInstallEvidence(pool(), tracker, clock.now());
};

it('tells what came of a pixel, and why the rest was refused', async () => {
  const tracker = await makeTracker(api, key);
  const script = (host: string) =>
    api.app.inject({ method: 'GET', url: `/tracking/a.js?tracker_id=${tracker}`, headers: { host } });
  expect((await script('doorplate.test')).statusCode).toBe(200);
  expect((await script('mirror.example')).statusCode).toBe(403);
  expect(await readLastVisitHour(pool(), tracker)).toBe(null);
  const answers = [
    await collect(api, tracker),
    await collect(api, tracker, { headers: { 'user-agent': 'Googlebot/2.1' } }),
    await collect(api, tracker, { headers: { 'sec-purpose': 'prefetch' } }),
    await collect(api, tracker, { headers: { origin: 'https://staging.example.com' } }),
    await collect(api, tracker, { headers: { origin: undefined } }),
    await collect(api, tracker, { headers: { host: 'other.example' } }),
    await collect(api, tracker, { body: { custom: { '1': 1 } } }),
    await collect(api, tracker, { body: { more: 1 } }),
    await collect(api, tracker, { body: 'no json' }),
  ];
  clock.advance(2_000);
  for (let n = 0; n < 8; n += 1) answers.push(await collect(api, tracker, { ip: `8.8.4.${n}` }));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([
    204, 204, 204, 403, 403, 403, 400, 400, 400, 204, 204, 204, 204, 204, 204, 204, 429,
  ]);
  await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${tracker}` });
  clock.advance(2_000);
  await collect(api, tracker);
  await api.inject(key, { method: 'POST', url: `/v1/trackers/${tracker}/delete` });
  await collect(api, tracker);
  const seen = await evidenceOf(tracker);
  expect(seen).toMatchObject({
    visits: { count: 8 },
    scripts: { count: 1 },
    crawlers: { count: 1 },
    prefetches: { count: 1 },
    refusals: [
      { reason: 'disabled', count: 1 },
      { reason: 'deleted', count: 1 },
      { reason: 'wrong_origin', count: 2 },
      { reason: 'untrusted_host', count: 2 },
      { reason: 'invalid_labels', count: 1 },
      { reason: 'invalid_body', count: 1 },
      { reason: 'rate', count: 1 },
    ],
    origins: [{ name: 'https://staging.example.com' }],
    hasManyAddresses: true,
    hasPublicAddress: true,
  });
  expect(seen.hosts.map(({ name }) => name).toSorted()).toEqual(['mirror.example', 'other.example']);
  await api.caughtUp();
  expect(await readLastVisitHour(pool(), tracker)).toMatch(/:00:00\.000Z$/);
});

it('counts refusals by the rate of a visitor, of trackers that exist, and asks for nothing', async () => {
  const [tracker, other] = [await makeTracker(api, key), await makeTracker(api, key)];
  const unknown = '2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e';
  const ip = '8.8.4.4';
  const send = async (id: string, times: number, body: string | Record<string, unknown> = {}) => {
    const answers = [];
    for (let n = 0; n < times; n += 1) answers.push(await collect(api, id, { ip, body }));
    return answers.map(({ statusCode }) => statusCode);
  };
  expect(new Set([...(await send(tracker, 5)), ...(await send(other, 5))])).toEqual(new Set([204]));
  const query = vi.spyOn(pool(), 'query');
  const refused = [
    ...(await send(tracker, 18)),
    ...(await send(unknown, 3)),
    ...(await send(tracker, 1, 'no json')),
    (await collect(api, tracker, { ip, headers: { 'content-type': 'image/png' } })).statusCode,
  ];
  expect(new Set(refused)).toEqual(new Set([429]));
  // Others come from jobs.
  const asked = query.mock.calls.map(([statement]) => (statement as { readonly name?: string }).name);
  expect(asked.filter((name) => name === 'listed_trackers' || name === 'note_install_evidence')).toEqual([]);
  query.mockRestore();
  expect(await evidenceOf(tracker)).toMatchObject({
    visits: { count: 5 },
    refusals: [{ reason: 'rate', count: 18 }],
  });
  expect((await evidenceOf(unknown)).refusals).toEqual([]);
});

it('notes nothing of a tracker that does not exist', async () => {
  const unknown = '2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e';
  const known = await makeTracker(api, key);
  expect((await collect(api, unknown)).statusCode).toBe(404);
  await collect(api, known);
  expect((await evidenceOf(known)).visits).toMatchObject({ count: 1 });
  const { rows } = await api.sql.query('select from work.install_evidence where tracker_id = $1', [unknown]);
  expect(rows).toEqual([]);
});
