import type { Logger } from 'pino';
import type { ProviderLimits } from '../../platform/provider-settings.ts';
import type { Verdict } from '../../platform/rate-limit.ts';
import { createFairBreaker } from './fair-breaker.ts';
import { NotAsked, type Provider, Unavailable } from './provider.ts';
import { RateTurns } from './rate-turns.ts';

export interface Guard {
  /** Admits a call at the provider's rate, over all processes. */
  readonly admit: (provider: string, requestsPerSecond: number) => Verdict | Promise<Verdict>;
  /** Takes one of the provider's requests of today, over all processes; false if none is left. */
  readonly takeFromBudget: (provider: string, requestsPerDay: number) => Promise<boolean>;
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
/** A command has no asker. */
const NO_ASKERS = [''];

/**
 * Limits the calls of a provider: by rate, by a budget a UTC day, and by circuit breakers of each process, which a failure of
 * one address alone does not open, and of one asker for that asker alone. A call that is held back throws `NotAsked`, which
 * never counts as an answer.
 */
export const guardProvider = <P extends Provider>(provider: P, limits: GuardedOptions, guard: Guard): P => {
  const { name } = provider;
  const { breakerOpenMs, onBreaker, log } = guard;
  const breaker = createFairBreaker({
    failures: FAILURES_TO_OPEN,
    openMs: breakerOpenMs,
    now: () => performance.now(),
  });

  const { requestsPerSecond, maxWaitMs } = limits;
  const turns =
    requestsPerSecond === null ? null : new RateTurns(() => guard.admit(name, requestsPerSecond), maxWaitMs);

  let isKnownOpen = false;
  const reportBreaker = (failure?: unknown): void => {
    const isOpen = breaker.isOpen();
    if (isOpen === isKnownOpen) return;
    isKnownOpen = isOpen;
    onBreaker(name, isOpen);
    const provider = name;
    if (isOpen)
      log.warn({ provider, failure: String(failure) }, 'provider keeps failing; its circuit breaker opens');
    else log.info({ provider }, 'provider answers again; its circuit breaker closes');
  };

  return {
    ...provider,
    lookup: async (ip, signal, options = {}) => {
      const { askers = NO_ASKERS } = options;
      const asker = askers.find((one) => breaker.admits(one));
      if (asker === undefined) throw new NotAsked('not asked: its circuit breaker is open');
      const admit = async (): Promise<void> => {
        await turns?.wait(askers, signal);
        await takeFromBudgetOfDay(name, limits, guard);
      };
      await admit();
      try {
        const record = await provider.lookup(ip, signal, { ...options, again: admit });
        breaker.succeeded(asker);
        reportBreaker();
        return record;
      } catch (error) {
        if (error instanceof Unavailable) breaker.failed(asker);
        else breaker.succeeded(asker);
        reportBreaker(error);
        throw error;
      }
    },
  };
};

const takeFromBudgetOfDay = async (
  name: string,
  { requestsPerDay }: GuardedOptions,
  { takeFromBudget }: Guard,
): Promise<void> => {
  if (requestsPerDay === null) return;
  // Without the store no call can be counted, so none is made.
  const isTaken = await takeFromBudget(name, requestsPerDay).catch(() => {
    throw new NotAsked('not asked: its budget could not be counted');
  });
  if (!isTaken) throw new NotAsked('not asked: its budget of today is used up');
};
