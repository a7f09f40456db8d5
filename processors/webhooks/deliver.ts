import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { DeliveryError } from '../../domain/webhooks/events.ts';
import { probeEveryMs } from '../../domain/webhooks/schedule.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { endsWithin } from '../../platform/pause.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { type AttemptDeps, makeAttempt, type Target } from './attempt.ts';
import { inAttemptSpan } from './attempt-span.ts';
import { createDeliveryClaims, type DeliveryClaim, type EndedAttempt, type Wanted } from './claims.ts';
import { expireDelivery } from './expire-deliveries.ts';
import { createHeldClaims } from './held-claims.ts';
import { createJournal } from './journal.ts';
import { createLanes } from './lanes.ts';
import { startWatch, type Watched } from './watch.ts';

export interface DeliverOptions extends AttemptDeps {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly log: Logger;
  /** Read models that must have applied the log up to the delivery's position before its first attempt. */
  readonly projections: readonly string[];
  /** Waits until the read model of deliveries reaches the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  /** Limits of one endpoint over all processes: concurrent attempts, and starts per second. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  /** Returns a further limit of a partner's concurrent attempts in this process. */
  readonly roomOfPartner?: (partnerId: string) => number;
  readonly onOutcome: (error: DeliveryError | null, state: 'pending' | 'delivered' | 'failed') => void;
  readonly onWatched: (watched: Watched) => void;
}

export interface Deliveries {
  /** Schedules the endpoints that the read model's notification names. */
  onNotification(notification: string): void;
  /** Waits for running attempts, up to a time limit. */
  stop(): Promise<void>;
}

/** Per process; so many that a few hundred hanging endpoints cannot fill them (see `createLanes`). */
const MAX_CONCURRENT_ATTEMPTS = 2_048;
/** Three times the longest attempt, so that a delayed renewal does not lose a claim. */
const LEASE_MS = 30_000;
/** Deliveries that become due or end within this time share the next poll. */
const GATHER_MS = 5;
/** Short, because the wall clock may jump. */
const POLL_MS = 500;
const RETRY_MS = 500;
/** A claim without an outcome is deleted within half a second; then its delivery is claimed again. */
const RELEASED_AGAIN_MS = 1_000;
/** A process must stop within ten seconds, all of its components included. */
const RUNNING_END_MS = 4_000;
const WRITE_END_MS = 1_500;

/**
 * Makes the attempts that are due, in any number of processes: PostgreSQL enforces the limits of an endpoint
 * (`claims.sql`). An attempt's slot is free when the attempt ends; its claim stays until its outcome is in the
 * read model.
 */
export const startDeliveries = (options: DeliverOptions): Deliveries => {
  const { clock, log, pool, concurrency } = options;
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const lanes = createLanes(concurrency, MAX_CONCURRENT_ATTEMPTS, options.roomOfPartner);
  const claims = createDeliveryClaims(pool, {
    ...options,
    holder: uuid(),
    leaseMs: LEASE_MS,
    probeEveryMs: probeEveryMs(options.retryBaseMs),
  });
  const held = createHeldClaims({ ...options, claims });
  const journal = createJournal({ ...options, onWritten: held.written, onExpired: held.drop });
  const running = new Set<Promise<void>>();
  let ended: EndedAttempt[] = [];
  let abandoned = false;

  const schedule = (webhookId: string, partnerId: string, at: number): void => {
    lanes.schedule(webhookId, partnerId, at);
    wakeup.wake();
  };
  const watch = startWatch({ ...options, schedule });

  const release = (claim: DeliveryClaim): void => {
    held.drop(claim);
    schedule(claim.webhook_id, claim.partner_id, clock.now() + RELEASED_AGAIN_MS);
  };

  const attempt = async (claim: DeliveryClaim, target: Target | undefined): Promise<void> => {
    let succeeded: boolean | null = null;
    try {
      await inAttemptSpan(options.store, claim, async (sent) => {
        const outcome = await makeAttempt(options, claim, target);
        if (outcome === 'destroyed') await expireDelivery(options, claim);
        else if (outcome !== null) sent(outcome);
        if (abandoned) return;
        if (outcome === null || outcome === 'destroyed') {
          release(claim);
          return;
        }
        succeeded = outcome.error === null;
        journal.add(claim, outcome, clock.now());
        options.onOutcome(outcome.error, outcome.state);
      });
    } catch (error) {
      log.warn(
        { error: String(error), delivery: claim.delivery_id },
        'delivery attempt failed to start; retried after its claim is released',
      );
      release(claim);
    } finally {
      ended.push({ claim, succeeded });
      lanes.ended(claim.webhook_id);
      wakeup.wake();
    }
  };

  const start = async (taken: readonly DeliveryClaim[]): Promise<void> => {
    const ids = [...new Set(taken.map(({ webhook_id }) => webhook_id))];
    const targets = await options.targetsOf(ids).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'endpoints could not be read; their deliveries are claimed again');
      return new Map<string, Target>();
    });
    await Promise.all(taken.map((claim) => attempt(claim, targets.get(claim.webhook_id))));
  };

  const freeSlots = async (): Promise<void> => {
    const batch = ended;
    if (batch.length === 0) return;
    ended = [];
    await claims.end(batch).catch((error: unknown) => {
      ended.push(...batch);
      throw error;
    });
  };

  const take = async (wanted: readonly Wanted[]): Promise<boolean> => {
    if (wanted.length === 0) return false;
    const at = clock.now();
    const taken = await claims.take(wanted, at);
    for (const one of taken) lanes.onClaimed(one);
    const started = taken.flatMap((one) => one.claims);
    if (started.length === 0) return false;
    held.add(started);
    const work = start(started).finally(() => running.delete(work));
    running.add(work);
    return true;
  };

  const poll = async (): Promise<void> => {
    const wanted = journal.isBehind() ? [] : lanes.plan(clock.now());
    try {
      const hasEnded = ended.length > 0;
      await freeSlots();
      const hasStarted = await take(wanted);
      if (hasStarted || hasEnded) await setTimeout(GATHER_MS);
    } catch (error) {
      log.warn({ error: String(error) }, 'deliveries could not be claimed; retry scheduled');
      for (const one of wanted) lanes.onNotClaimed(one, clock.now());
      await wakeup.wait(RETRY_MS, stopping.signal);
    }
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await poll();
      const ms = ended.length > 0 ? 0 : journal.isBehind() ? POLL_MS : lanes.nextIn(clock.now());
      if (ms > 0) await wakeup.wait(Math.min(ms, POLL_MS), stopping.signal);
    }
  })();

  return {
    onNotification: watch.onNotification,
    stop: async () => {
      stopping.abort();
      await loop;
      await endsWithin(Promise.all(running), RUNNING_END_MS);
      // An attempt that is cut off has no outcome; it is repeated after its lease.
      abandoned = true;
      await journal.close(WRITE_END_MS);
      await freeSlots().catch(() => undefined);
      await watch.stop();
      await held.stop();
    },
  };
};
