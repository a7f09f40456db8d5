import type { CommandContext } from '../handle.ts';
import {
  type ProjectedDelivery,
  type RetryDeps,
  type RetryRefusal,
  retryDelivery,
} from './retry-delivery.ts';

/** A failed delivery and its position in the list, newest first. */
export interface ListedDelivery extends ProjectedDelivery {
  readonly position: string;
}

export interface RetriedFailed {
  readonly retried: number;
  /** Whether none of them is left. */
  readonly all: boolean;
  /** Why it stopped before its end; null: it did not, or its time limit passed. */
  readonly refusal: RetryRefusal | null;
}

const PAGE = 50;
/** Part of a page's time limit; the rest is for showing the result. */
const MOMENT_MS = 2_500;

/**
 * Retries the failed deliveries of an endpoint that were queued at or after `since`, as many as the time limit allows.
 * @param listFailed returns a page of failed deliveries before a position, newest first
 * @throws as retryDelivery
 */
export const retryFailed = async (
  deps: RetryDeps,
  listFailed: (before: bigint | null, limit: number) => Promise<readonly ListedDelivery[]>,
  since: string,
  context: CommandContext,
): Promise<RetriedFailed> => {
  let retried = 0;
  let before: bigint | null = null;
  const until = performance.now() + MOMENT_MS;
  for (;;) {
    const page = await listFailed(before, PAGE);
    const due = page.filter(({ created_at }) => created_at >= since);
    const outcomes = await Promise.all(due.map((row) => retryDelivery(deps, row, context)));
    retried += outcomes.filter(({ ok }) => ok).length;
    // An expired payload stops only its own delivery's retry.
    const stopped = outcomes.find((outcome) => !outcome.ok && outcome.refusal !== 'webhook_event_expired');
    if (stopped && !stopped.ok) return { retried, all: false, refusal: stopped.refusal };
    const last = page.at(-1);
    if (due.length < PAGE || last === undefined) return { retried, all: true, refusal: null };
    if (performance.now() > until) return { retried, all: false, refusal: null };
    before = BigInt(last.position);
  }
};
