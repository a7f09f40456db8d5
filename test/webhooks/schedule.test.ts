import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { afterAttempt, type LastAttempt, probeEveryMs } from '../../domain/webhooks/schedule.ts';

const BASE = 15_000;
const failed = (over: Partial<LastAttempt> = {}): LastAttempt => ({
  attempt: 1,
  ranMs: 0,
  error: 'http_status',
  retryAfterMs: null,
  ...over,
});
const outcomeOf = (over: Partial<LastAttempt>, random = 0.5) =>
  afterAttempt(failed(over), { baseMs: BASE, random });

describe('after an attempt', () => {
  it('that succeeded, the delivery is delivered, whichever attempt it was', () => {
    expect(outcomeOf({ error: null, attempt: 12, ranMs: 8 * DAY })).toEqual({
      state: 'delivered',
      delayMs: null,
    });
  });

  it.each([
    [1, 15_000],
    [2, MINUTE],
    [3, 4 * MINUTE],
    [6, 15_000 * 4 ** 5],
    [7, 6 * HOUR],
    [11, 6 * HOUR],
  ])('number %d that failed, the delivery waits for %d ms', (attempt, delayMs) => {
    expect(outcomeOf({ attempt })).toEqual({ state: 'pending', delayMs });
  });

  it('the delay varies by a fifth at most', () => {
    expect(outcomeOf({}, 0).delayMs).toBe(12_000);
    expect(outcomeOf({}, 1).delayMs).toBe(18_000);
    expect(outcomeOf({ attempt: 9 }, 1).delayMs).toBe(6 * HOUR * 1.2);
  });

  it('a longer Retry-After is followed up to a day, and a shorter one is ignored', () => {
    expect(outcomeOf({ retryAfterMs: 90_000 }).delayMs).toBe(90_000);
    expect(outcomeOf({ retryAfterMs: 30 * DAY }).delayMs).toBe(DAY);
    expect(outcomeOf({ retryAfterMs: 1_000 }).delayMs).toBe(15_000);
  });

  it('number twelve that failed, the delivery has failed', () => {
    expect(outcomeOf({ attempt: 12, retryAfterMs: 5 })).toEqual({ state: 'failed', delayMs: null });
  });

  it('that leaves no time for another within seven days, the delivery has failed', () => {
    expect(outcomeOf({ attempt: 8, ranMs: 7 * DAY - 6 * HOUR }).state).toBe('pending');
    expect(outcomeOf({ attempt: 8, ranMs: 7 * DAY - 6 * HOUR + 1 })).toEqual({
      state: 'failed',
      delayMs: null,
    });
    expect(outcomeOf({ ranMs: 6 * DAY + 1, retryAfterMs: DAY }).state).toBe('failed');
  });
});

describe('the probes of an endpoint with an open breaker', () => {
  it('are a minute apart, or less when retries are quicker', () => {
    expect(probeEveryMs(15_000)).toBe(55_000);
    expect(probeEveryMs(60_000)).toBe(55_000);
    expect(probeEveryMs(100)).toBe(400);
  });
});
