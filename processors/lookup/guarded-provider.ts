import type { Logger } from 'pino';
import type { ProviderLimits } from '../../platform/provider-settings.ts';
import type { Verdict } from '../../platform/rate-limit.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { createBreaker } from './breaker.ts';
import { NotAsked, type Provider } from './provider.ts';

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

const FAILURES_TO_OPEN = 5;

/**
 * Limits the calls of a provider: by rate, by a budget a UTC day, and by a circuit breaker for each process. A call that
 * is held back throws `NotAsked`, which never counts as an answer.
 */
export const guardProvider = <P extends Provider>(
  provider: P,
  { requestsPerSecond, requestsPerDay, maxWaitMs }: GuardedOptions,
  { admit, takeFromBudget, breakerOpenMs, onBreaker, log }: Guard,
): P => {
  const { name } = provider;
  const breaker = createBreaker({
    failures: FAILURES_TO_OPEN,
    openMs: breakerOpenMs,
    now: () => performance.now(),
  });

  const waitForRate = async (signal: AbortSignal): Promise<void> => {
    if (requestsPerSecond === null) return;
    const until = performance.now() + maxWaitMs;
    for (;;) {
      const verdict = await admit(name, requestsPerSecond);
      if (verdict === null) return;
      const late = performance.now() + verdict.retryMs > until;
      if (late || signal.aborted) throw new NotAsked('not asked: its rate is used up');
      await createWakeup().wait(verdict.retryMs, signal);
    }
  };

  const takeOne = async (ofDay: number): Promise<void> => {
    const isTaken = await takeFromBudget(name, ofDay).catch(() => null);
    if (isTaken === null) throw new NotAsked('not asked: its budget of today could not be counted');
    if (!isTaken) throw new NotAsked('not asked: its budget of today is used up');
  };

  const noteBreaker = (wasOpen: boolean, failure?: unknown): void => {
    const isOpen = breaker.isOpen();
    if (isOpen === wasOpen) return;
    onBreaker(name, isOpen);
    if (isOpen)
      log.warn(
        { provider: name, failure: String(failure) },
        'provider keeps failing; its circuit breaker opens',
      );
    else log.info({ provider: name }, 'provider answers again; its circuit breaker closes');
  };

  return {
    ...provider,
    lookup: async (ip, signal, onRaw) => {
      if (!breaker.admits()) throw new NotAsked('not asked: its circuit breaker is open');
      await waitForRate(signal);
      if (requestsPerDay !== null) await takeOne(requestsPerDay);
      const wasOpen = breaker.isOpen();
      try {
        const record = await provider.lookup(ip, signal, onRaw);
        breaker.succeeded();
        noteBreaker(wasOpen);
        return record;
      } catch (error) {
        breaker.failed();
        noteBreaker(wasOpen, error);
        throw error;
      }
    },
  };
};
