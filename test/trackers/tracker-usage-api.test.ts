import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
});
afterAll(() => api.close());

const get = (url: string, by = key) => api.inject(by, { method: 'GET', url });
const usage = async (tracker: string, query = '') => {
  const answer = await get(`/v1/trackers/${tracker}/usage${query}`);
  expect(answer.statusCode).toBe(200);
  return answer.json();
};
const reveal = (session: unknown) =>
  api.inject(key, {
    method: 'POST',
    url: `/v1/sessions/${session}/reveal`,
    headers: { 'idempotency-key': randomUUID() },
  });
const NOTHING = {
  capture_requests: 0,
  sessions: 0,
  api_requests: 0,
  completed_responses: 0,
  company_responses: 0,
  reveals: 0,
  billable_reveals: 0,
};

describe('the usage of a tracker', () => {
  it('counts captures with their retries, calls that succeeded, and reveals with their units', async () => {
    const tracker = await makeTracker(api, key);
    const visit = { token: randomUUID(), visit_id: randomUUID() };
    provider.says('5.20.0.1', aCompany('Acme'));
    await collect(api, tracker, { ip: '5.20.0.1', body: visit });
    await collect(api, tracker, { ip: '5.20.0.1', body: visit });
    await collect(api, tracker, { headers: { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' } });
    await collect(api, tracker, { headers: { origin: 'https://elsewhere.example' } });
    await feed(api, key);
    const { sessions } = await feed(api, key, `tracker_id=${tracker}`);
    const session = sessions[0]?.session_id;
    await get(`/v1/sessions/${session}`);
    await get(`/v1/sessions/${randomUUID()}`);
    const pending = await reveal(session);
    expect(pending.statusCode).toBe(202);
    expect((await usage(tracker)).pending_reveals).toBe(1);
    let reads = 0;
    const { reveal_id } = pending.json();
    await eventually(
      'the reveal is complete',
      () => {
        reads += 1;
        return get(`/v1/reveals/${reveal_id}`);
      },
      ({ statusCode }) => statusCode === 200,
    );
    await get(`/v1/reveals/${reveal_id}`);
    const body = await usage(tracker);
    const counts = {
      capture_requests: 3,
      sessions: 1,
      // A page of the feed, a preview, the reveal, and what polling took.
      api_requests: 3 + reads + 1,
      completed_responses: 2 + 1 + 1,
      company_responses: 2,
      reveals: 1,
      billable_reveals: 1,
    };
    expect(body).toMatchObject({
      tracker_id: tracker,
      from: new Date(NOON).toISOString().replace(/T.*/, 'T00:00:00.000Z'),
      timezone: 'UTC',
      totals: counts,
      hourly: [{ hour: new Date(NOON).toISOString().replace(/T12.*/, 'T12:00:00.000Z'), ...counts }],
      pending_reveals: 0,
      metrics_started_at: new Date(NOON).toISOString(),
      partial_history: true,
    });
    const { reveals } = (await api.usage(key)).json();
    expect(reveals).toMatchObject({
      billable_reveals: 1,
      completed_reveals: 1,
      hourly: [{ hour: body.hourly[0].hour, billable_reveals: 1, completed_reveals: 1 }],
    });
  });

  it('is empty for a new tracker, stays readable for a deleted one, and is hidden from other partners', async () => {
    const tracker = await makeTracker(api, key);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${tracker}/delete` });
    expect(await usage(tracker)).toMatchObject({ totals: NOTHING, hourly: [], pending_reveals: 0 });
    const stranger = await api.key();
    expect(codeOf(await get(`/v1/trackers/${tracker}/usage`, stranger))).toBe('tracker_not_found');
    expect(codeOf(await get(`/v1/trackers/${randomUUID()}/usage`))).toBe('tracker_not_found');
    expect(codeOf(await get('/v1/trackers/x/usage'))).toBe('invalid_tracker');
    expect((await api.usage(stranger)).json()).not.toHaveProperty('reveals');
  });

  it('refuses an invalid range, and marks partial history', async () => {
    const tracker = await makeTracker(api, key);
    for (const query of ['?to=2026-03-15', '?from=x', '?from=2026-03-15&to=2026-03-15', '?a=1']) {
      expect(codeOf(await get(`/v1/trackers/${tracker}/usage${query}`))).toBe('invalid_range');
    }
    clock.advance(DAY + HOUR);
    expect(await usage(tracker)).toMatchObject({ partial_history: false });
    expect(await usage(tracker, '?from=2026-03-01')).toMatchObject({ partial_history: true });
  });
});
