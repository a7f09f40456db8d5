import { describe, expect, it } from 'vitest';
import { HOUR } from '../../domain/kernel/time.ts';
import type { ApiRequest } from '../../http/contract/route.ts';
import { createAnswerCache } from '../../read-api/lookup/get-lookup.ts';
import { AT, IP, result } from './lookup-events.ts';

const request = (receivedAt: number) => ({ id: 'a-request', receivedAt }) as ApiRequest;

const PROVIDERS = ['directory'];

describe('a cache result in memory', () => {
  it('is used for an hour, so that a result whose times were cut to days is soon read again', () => {
    const cache = createAnswerCache({
      note: () => undefined,
      configured: () => PROVIDERS,
      hearsOfErasures: () => true,
    });
    cache.keep(IP, result(), AT);
    expect(cache.answer(request(AT + HOUR - 1), IP)?.status).toBe(200);
    expect(cache.answer(request(AT + HOUR), IP)).toBeNull();
  });

  it('is used no longer than it is cache', () => {
    const cache = createAnswerCache({
      note: () => undefined,
      configured: () => PROVIDERS,
      hearsOfErasures: () => true,
    });
    cache.keep(IP, result({ fresh_until: new Date(AT + 1_000).toISOString() }), AT);
    expect(cache.answer(request(AT + 999), IP)?.status).toBe(200);
    expect(cache.answer(request(AT + 1_000), IP)).toBeNull();
  });

  it('is used no longer once an erasure was noticed, nor while none can be, nor kept by a read that began before', () => {
    let hears = true;
    const cache = createAnswerCache({
      note: () => undefined,
      configured: () => PROVIDERS,
      hearsOfErasures: () => hears,
    });
    cache.keep(IP, result(), AT);
    hears = false;
    expect(cache.answer(request(AT), IP)).toBeNull();
    hears = true;
    expect(cache.answer(request(AT), IP)?.status).toBe(200);
    cache.clear();
    cache.keep(IP, result(), AT);
    expect(cache.answer(request(AT), IP)).toBeNull();
  });
});
