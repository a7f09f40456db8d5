import type { Logger } from 'pino';
import { pause } from '../../../platform/clock/waiting.ts';
import type { ProviderLimits } from '../../../platform/config/provider-settings.ts';
import type { Verdict } from '../../../platform/limits/rate-limit.ts';
import { createSemaphore } from '../../../platform/limits/semaphore.ts';
import { createBreaker } from './breaker.ts';
import { NotAsked, type Provider, Unavailable } from './provider.ts';

/**
 * A provider behind its limits: a rate and a budget a UTC day over all processes, and a circuit breaker of each process.
 * A call that is held back throws `NotAsked`, which counts as no answer and no attempt
 * (decisions, What the product defends); `isHeldBack` says beforehand that a call would be, and `hasProbe` that one
 * call may probe a provider whose breaker is open.
 */

export interface Guard {
  /** Admits a call at the provider's rate, over all processes. */
  readonly admit: (provider: string, requestsPerSecond: number) => Verdict | Promise<Verdict>;
  /** Takes one of the provider's requests of a UTC day, over all processes; false if none is left. */
  readonly takeFromBudget: (provider: string, requestsPerDay: number) => Promise<boolean>;
  /** Returns the UTC day (`YYYY-MM-DD`). */
  readonly today: () => string;
  /** Time in which a provider that keeps failing is called five times at most, milliseconds. */
  readonly breakerPeriodMs: number;
  readonly onBreaker: (provider: string, isOpen: boolean) => void;
  readonly log: Logger;
}

export interface GuardedOptions extends ProviderLimits {
  /** Longest wait for the rate, milliseconds. */
  readonly maxWaitMs: number;
}

/** Puts a provider behind its limits. Failures of one address alone (other than `Unavailable`) open no breaker. */
export function guardProvider<P extends Provider>(provider: P, limits: GuardedOptions, guard: Guard): P {
  const { name } = provider;
  const { log, onBreaker } = guard;
  const breaker = createBreaker({
    periodMs: guard.breakerPeriodMs,
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

  const isUsedUp = (): boolean => rate.isUsedUp() || budget.isUsedUp();
  const admit = async (signal: AbortSignal): Promise<void> => {
    await rate.wait(signal);
    await budget.take();
  };

  return {
    ...provider,
    isHeldBack: () => breaker.isOpen() || isUsedUp(),
    hasProbe: () => breaker.hasProbe() && !isUsedUp(),
    lookup: async (ip, signal, options = {}) => {
      const call = breaker.admit(ip, options.mayProbe ?? true);
      if (call === null) throw breakerIsOpen();
      try {
        await admit(signal);
      } catch (error) {
        call.withdrawn();
        throw error;
      }
      const again = async (): Promise<void> => {
        // A probe is one request.
        if (breaker.isOpen()) throw breakerIsOpen();
        await admit(signal);
      };
      try {
        const record = await provider.lookup(ip, signal, { ...options, again });
        call.succeeded();
        return record;
      } catch (error) {
        if (error instanceof Unavailable) call.failed(error);
        else call.succeeded();
        throw error;
      }
    },
  };
}

const breakerIsOpen = (): NotAsked => new NotAsked('not asked: its circuit breaker is open');

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
