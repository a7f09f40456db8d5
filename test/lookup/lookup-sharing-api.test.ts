import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../domain/kernel/time.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let first: Key;
let second: Key;
let third: Key;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  [first, second, third] = [await api.key(), await api.key(), await api.key()];
});
afterAll(() => api.close());

const iso = (ms: number) => new Date(ms).toISOString();
const pendingOf = async (key: Key) => (await api.usage(key)).json().enrichment;

describe('a submission', () => {
  it('is known to its partner alone; another one joins it with a reservation of its own', async () => {
    const ip = '5.4.0.1';
    provider.says(ip, 'fails');
    const made = clock.now();
    await api.post(first, ip);
    expect((await api.get(second, ip)).json().error.code).toBe('not_requested');

    clock.advance(MINUTE);
    await eventually(
      'an attempt has failed, and none is due',
      () => api.get(first, ip),
      (answer) => Date.parse(answer.json().next_retry_at ?? '') > clock.now(),
    );
    const joined = await api.post(second, ip);
    expect(joined.statusCode).toBe(202);
    expect(joined.json().submitted_at).toBe(iso(clock.now()));
    // What failed before is the other's.
    const own = { status: 'pending', attempts: 0, next_retry_at: null, last_error: null };
    expect(joined.json()).toMatchObject(own);
    expect((await api.get(second, ip)).json()).toMatchObject({ ...own, submitted_at: iso(clock.now()) });
    expect((await api.get(first, ip)).json()).toMatchObject({ status: 'retrying', submitted_at: iso(made) });
    expect((await api.get(third, ip)).statusCode).toBe(404);
    expect(await pendingOf(first)).toMatchObject({ pending: 1, retrying: 1, oldest_pending_at: iso(made) });
    const without = { retrying: 0, oldest_checked_at: null };
    expect(await pendingOf(second)).toMatchObject({
      ...without,
      pending: 1,
      oldest_pending_at: iso(clock.now()),
    });
    expect(await pendingOf(third)).toMatchObject({ pending: 0, oldest_pending_at: null });

    const { attempts } = (await api.get(first, ip)).json();
    clock.advance(2 * MINUTE);
    const retried = await eventually(
      'another attempt has failed',
      () => api.get(second, ip),
      (answer) => answer.json().status === 'retrying',
    );
    expect(retried.json().attempts).toBe(1);
    expect((await api.post(second, ip)).json().attempts).toBe(1);
    expect((await api.get(first, ip)).json().attempts).toBe(attempts + 1);
    expect(await pendingOf(second)).toMatchObject({ retrying: 1, oldest_checked_at: iso(clock.now()) });

    provider.says(ip, aCompany('Joined'));
    clock.advance(4 * MINUTE);
    for (const key of [first, second, third]) {
      expect((await api.settled(key, ip)).json().company.name).toBe('Joined');
    }
    await eventually(
      'both reservations are settled',
      async () => [await pendingOf(first), await pendingOf(second)],
      (both) => both.every(({ pending }) => pending === 0),
    );
    expect(await pendingOf(second)).toMatchObject({ completed_observed_last_minute: 1 });
    expect(await pendingOf(third)).toMatchObject({ completed_observed_last_minute: 0 });
  });

  it('is one of the partner, with any of its keys', async () => {
    const sibling = await api.key({}, first.partner_id);
    provider.says('5.4.0.2', 'hangs');
    const { submitted_at } = (await api.post(first, '5.4.0.2')).json();
    clock.advance(1_000);
    expect((await api.get(sibling, '5.4.0.2')).json().submitted_at).toBe(submitted_at);
    expect((await api.post(sibling, '5.4.0.2')).json().submitted_at).toBe(submitted_at);
    expect((await pendingOf(sibling)).pending).toBe((await pendingOf(first)).pending);
  });

  it('of a refresh is not shown to another partner either', async () => {
    const ip = '5.4.0.3';
    provider.says(ip, aCompany('Old', { fresh_for_days: 1 }));
    await api.post(first, ip);
    await api.settled(first, ip);
    clock.advance(24 * 60 * MINUTE);
    provider.says(ip, 'hangs');
    expect((await api.post(first, ip)).json().refresh_status).toBe('pending');
    expect((await api.get(first, ip)).json().refresh_status).toBe('pending');
    const seen = (await api.get(second, ip)).json();
    expect(seen).toMatchObject({ stale: true, refresh_status: 'not_requested', refresh_error: null });
    expect((await api.post(second, ip)).json().refresh_status).toBe('pending');
    expect((await api.get(second, ip)).json().refresh_status).toBe('pending');
  });
});
