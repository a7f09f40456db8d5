import type { Logger } from 'pino';
import { pause } from '../../../platform/clock/waiting.ts';
import type { ProviderLimits } from '../../../platform/config/provider-settings.ts';
import type { Verdict } from '../../../platform/limits/rate-limit.ts';
import { createSemaphore } from '../../../platform/limits/semaphore.ts';
import { NotAsked, type Provider, Unavailable } from './provider.ts';

/**
 * A provider behind its limits: a rate and a budget a UTC day over all processes, and a circuit breaker of each process that
 * ten calls in a row open. A call that is held back throws `NotAsked`, which counts as no answer and no attempt
 * (decisions, What the product defends); `isHeldBack` says beforehand that a call would be.
 */

export interface Guard {
  /** Admits a call at the provider's rate, over all processes. */
  readonly admit: (provider: string, requestsPerSecond: number) => Verdict | Promise<Verdict>;
  /** Takes one of the provider's requests of a UTC day, over all processes; false if none is left. */
  readonly takeFromBudget: (provider: string, requestsPerDay: number) => Promise<boolean>;
  /** Returns the UTC day (`YYYY-MM-DD`). */
  readonly today: () => string;
  /** Time between two calls of a provider that keeps failing, milliseconds. */
  readonly breakerOpenMs: number;
  readonly onBreaker: (provider: string, isOpen: boolean) => void;
  readonly log: Logger;
}

export interface GuardedOptions extends ProviderLimits {
  /** Longest wait for the rate, milliseconds. */
  readonly maxWaitMs: number;
}

/** As many as a webhook endpoint's breaker takes. */
const FAILURES_TO_OPEN = 10;

/** Puts a provider behind its limits. Failures of one address alone (other than `Unavailable`) open no breaker. */
export function guardProvider<P extends Provider>(provider: P, limits: GuardedOptions, guard: Guard): P {
  const { name } = provider;
  const { log, onBreaker } = guard;
  const breaker = createBreaker({
    failures: FAILURES_TO_OPEN,
    openMs: guard.breakerOpenMs,
    now: () => performance.now(),
    onChange: (isOpen, failure) => {
      onBreaker(name, isOpen);
      if (isOpen)
        log.warn(
          { provider: name, failure: String(failure) },
          'provider keeps failing; its circuit breaker opens',
        );
      else log.info({ provider: name }, 'provider answers again; its circuit breaker closes');
    },
  });
  const rate = createRate(name, limits, guard);
  const budget = createBudget(name, limits, guard);

  return {
    ...provider,
    isHeldBack: () => breaker.isWaiting() || rate.isUsedUp() || budget.isUsedUp(),
    lookup: async (ip, signal, options = {}) => {
      if (!breaker.admits()) throw new NotAsked('not asked: its circuit breaker is open');
      const admit = async (): Promise<void> => {
        await rate.wait(signal);
        await budget.take();
      };
      await admit();
      try {
        const record = await provider.lookup(ip, signal, { ...options, again: admit });
        breaker.succeeded();
        return record;
      } catch (error) {
        if (error instanceof Unavailable) breaker.failed(error);
        else breaker.succeeded();
        throw error;
      }
    },
  };
}

interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Time between two probes while it is open, milliseconds. */
  readonly openMs: number;
  /** Monotonic clock, milliseconds. */
  readonly now: () => number;
  readonly onChange: (isOpen: boolean, failure?: unknown) => void;
}

/** Creates a circuit breaker. While it is open, one call in each period is admitted as a probe; a success closes it. */
export function createBreaker({ failures, openMs, now, onChange }: BreakerOptions) {
  let inARow = 0;
  let nextProbe = 0;
  const isOpen = (): boolean => inARow >= failures;
  const isWaiting = (): boolean => isOpen() && now() < nextProbe;
  return {
    /** Whether a call would be held back now. */
    isWaiting,
    admits: (): boolean => {
      if (isWaiting()) return false;
      if (isOpen()) nextProbe = now() + openMs;
      return true;
    },
    succeeded: (): void => {
      const closes = isOpen();
      inARow = 0;
      if (closes) onChange(false);
    },
    failed: (failure?: unknown): void => {
      inARow += 1;
      if (isOpen()) nextProbe = now() + openMs;
      if (inARow === failures) onChange(true, failure);
    },
  };
}

/** Creates the wait for a provider's rate, in the order of the calls. */
function createRate(name: string, { requestsPerSecond, maxWaitMs }: GuardedOptions, guard: Guard) {
  let usedUpUntil = 0;
  const refusal = (): NotAsked => new NotAsked('not asked: its rate is used up');
  const queue = createSemaphore({ limit: 1, maxWaitMs, refusal });

  async function waitFirst(perSecond: number, until: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // Without the store no call can be counted, so none is made.
      const verdict = await Promise.resolve(guard.admit(name, perSecond)).catch(() => {
        throw new NotAsked('not asked: its rate could not be counted');
      });
      if (verdict === null) return;
      if (performance.now() + verdict.retryMs > until) {
        usedUpUntil = performance.now() + verdict.retryMs;
        throw refusal();
      }
      await pause(verdict.retryMs, signal);
    }
    throw refusal();
  }

  return {
    isUsedUp: (): boolean => performance.now() < usedUpUntil,
    /** @throws NotAsked if that would take too long, or at an abort */
    wait: async (signal: AbortSignal): Promise<void> => {
      if (requestsPerSecond === null) return;
      if (signal.aborted) throw refusal();
      const until = performance.now() + maxWaitMs;
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(refusal()), { once: true });
      });
      await Promise.race([queue.enter(() => waitFirst(requestsPerSecond, until, signal)), aborted]);
    },
  };
}

function createBudget(name: string, { requestsPerDay }: GuardedOptions, { takeFromBudget, today }: Guard) {
  let usedUpOn = '';
  return {
    isUsedUp: (): boolean => usedUpOn === today(),
    /** @throws NotAsked if nothing is left of today's, or it cannot be counted */
    take: async (): Promise<void> => {
      if (requestsPerDay === null) return;
      const day = today();
      const isTaken = await takeFromBudget(name, requestsPerDay).catch(() => {
        throw new NotAsked('not asked: its budget could not be counted');
      });
      if (isTaken) return;
      usedUpOn = day;
      throw new NotAsked('not asked: its budget of today is used up');
    },
  };
}
