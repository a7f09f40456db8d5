import { LRUCache } from 'lru-cache';

/**
 * A provider's circuit breaker (decisions, What the product defends). It goes by the last calls of different addresses, because a
 * vendor that always fails for some addresses must not hold up the others. An open one admits a call now and then, as a probe.
 */

/** A call that was admitted. Exactly one of its methods is called, when it has ended. */
export interface AdmittedCall {
  succeeded(): void;
  failed(failure: unknown): void;
  /** Ends a call that was not made after all. */
  withdrawn(): void;
}

export interface Breaker {
  isOpen(): boolean;
  /** Whether it is open and would admit a probe now. */
  hasProbe(): boolean;
  /** @returns null: the call is held back. `mayProbe` false: it always is while the breaker is open */
  admit(ip: string, mayProbe: boolean): AdmittedCall | null;
}

interface BreakerOptions {
  /** Time in which an open breaker admits five calls, milliseconds. */
  readonly periodMs: number;
  /** Monotonic clock, milliseconds. */
  readonly now: () => number;
  readonly onChange: (isOpen: boolean, failure?: unknown) => void;
}

/** Failures among the last calls of different addresses that open the breaker: as many as open a webhook endpoint's. */
const FAILED_ADDRESSES = 10;
const LAST_ADDRESSES = 20;
/** Probes in a period, evenly spaced, so that a new address need not wait for a whole one; and at a time. */
const PROBES = 5;
/** Addresses whose last call failed, which are remembered: a further failure of one says nothing new of the provider. */
const MAX_FAILED = 10_000;

/** Creates a circuit breaker. A success closes it. */
export function createBreaker({ periodMs, now, onChange }: BreakerOptions): Breaker {
  const failing = new LRUCache<string, true>({ max: MAX_FAILED });
  /** Whether the last call of an address failed, the latest last. */
  const lastCalls = new Map<string, boolean>();
  let isOpen = false;
  let nextProbeAt = 0;
  let probing = 0;

  const hasProbe = (): boolean => isOpen && probing < PROBES && now() >= nextProbeAt;
  const spaceProbes = (): void => {
    nextProbeAt = now() + periodMs / PROBES;
  };

  function note(ip: string, failed: boolean): void {
    lastCalls.delete(ip);
    lastCalls.set(ip, failed);
    const [oldest] = lastCalls.keys();
    if (lastCalls.size > LAST_ADDRESSES && oldest !== undefined) lastCalls.delete(oldest);
  }

  function succeeded(ip: string): void {
    failing.delete(ip);
    note(ip, false);
    if (!isOpen) return;
    isOpen = false;
    lastCalls.clear();
    onChange(false);
  }

  function failed(ip: string, failure: unknown): void {
    const isKnown = failing.has(ip);
    failing.set(ip, true);
    if (isOpen || isKnown) return;
    note(ip, true);
    if ([...lastCalls.values()].filter((hasFailed) => hasFailed).length < FAILED_ADDRESSES) return;
    isOpen = true;
    spaceProbes();
    onChange(true, failure);
  }

  return {
    isOpen: () => isOpen,
    hasProbe,
    admit: (ip, mayProbe) => {
      const isProbe = isOpen;
      if (isProbe && !(mayProbe && hasProbe())) return null;
      if (isProbe) {
        spaceProbes();
        probing += 1;
      }
      const withdrawn = (): void => {
        if (isProbe) probing -= 1;
      };
      return {
        withdrawn,
        succeeded: () => {
          withdrawn();
          succeeded(ip);
        },
        failed: (failure) => {
          withdrawn();
          failed(ip, failure);
        },
      };
    },
  };
}
