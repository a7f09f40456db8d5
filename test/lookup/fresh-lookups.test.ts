import { describe, expect, it } from 'vitest';
import { HOUR } from '../../domain/kernel/time.ts';
import type { ApiRequest } from '../../http/route.ts';
import { createFreshLookups } from '../../read-api/lookup/fresh-lookups.ts';
import { AT, IP, result } from './lookup-events.ts';

const request = (receivedAt: number) => ({ id: 'a-request', receivedAt }) as ApiRequest;

const PROVIDERS = ['directory'];

describe('a fresh result in memory', () => {
  it('is used for an hour, so that a result whose times were cut to days is soon read again', () => {
    const fresh = createFreshLookups({ note: () => undefined, configured: () => PROVIDERS });
    fresh.keep(IP, result(), AT);
    expect(fresh.answer(request(AT + HOUR - 1), IP)?.status).toBe(200);
    expect(fresh.answer(request(AT + HOUR), IP)).toBeNull();
  });

  it('is used no longer than it is fresh', () => {
    const fresh = createFreshLookups({ note: () => undefined, configured: () => PROVIDERS });
    fresh.keep(IP, result({ fresh_until: new Date(AT + 1_000).toISOString() }), AT);
    expect(fresh.answer(request(AT + 999), IP)?.status).toBe(200);
    expect(fresh.answer(request(AT + 1_000), IP)).toBeNull();
  });
});
