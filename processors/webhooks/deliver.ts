import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { DeliveryError } from '../../domain/webhooks/events.ts';
import { probeEveryMs } from '../../domain/webhooks/schedule.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
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
  /** The read models that must have applied the log up to where a delivery was queued, before its first attempt. */
  readonly projections: readonly string[];
  /** Waits until the read model of deliveries has the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  /** Attempts at once, and starts a second, of one endpoint over all processes. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  /** Attempts of a partner at once in this process, where something else limits them. */
  readonly roomOfPartner?: (partnerId: string) => number;
  readonly onOutcome: (error: DeliveryError | null, state: 'pending' | 'delivered' | 'failed') => void;
  readonly onWatched: (watched: Watched) => void;
}

export interface Deliveries {
  /** Something may be due: what the read model's notification says of it. */
  onNotification(notification: string): void;
  /** Lets running attempts end, for a while. */
  stop(): Promise<void>;
}

/** Attempts of one process at once, which a few hundred endpoints that hang cannot fill (see `createLanes`). */
const PLACES = 2_048;
/** Three times the longest attempt. */
const LEASE_MS = 30_000;
/** What comes due, or ends, meanwhile shares the next look. */
const GATHER_MS = 5;
/** A clock may jump. */
const POLL_MS = 500;
const AGAIN_MS = 500;
/** A process ends within ten seconds, with all of its parts. */
const RUNNING_END_MS = 4_000;
const WRITTEN_MS = 1_500;

/**
 * Makes the attempts that are due, in any number of processes: what holds for an endpoint is held in PostgreSQL
 * (`work.claim_deliveries`), so workers add up. Slots are free when an attempt ends; a claim is held until its outcome
 * is in the read model.
 */
export const startDeliveries = (options: DeliverOptions): Deliveries => {
  const { clock, log, pool, concurrency } = options;
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const lanes = createLanes(concurrency, PLACES, options.roomOfPartner);
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

  const look = (webhookId: string, partnerId: string, at: number): void => {
    lanes.look(webhookId, partnerId, at);
    wakeup.wake();
  };
  const watch = startWatch({ ...options, look });

  const attempt = async (claim: DeliveryClaim, target: Target | undefined, at: number): Promise<void> => {
    let succeeded: boolean | null = null;
    try {
      await inAttemptSpan(options.store, claim, async (sent) => {
        const outcome = await makeAttempt(options, claim, target, at);
        if (outcome === 'destroyed') await expireDelivery(options, claim);
        else if (outcome !== null) sent(outcome);
        if (abandoned) return;
        if (outcome === null || outcome === 'destroyed') {
          held.drop(claim);
          return;
        }
        succeeded = outcome.error === null;
        journal.add(claim, outcome, clock.now());
        options.onOutcome(outcome.error, outcome.state);
      });
    } catch (error) {
      log.warn({ error: String(error), delivery: claim.delivery_id }, 'a delivery was not attempted');
      held.drop(claim);
    } finally {
      ended.push({ claim, succeeded });
      lanes.ended(claim.webhook_id);
      wakeup.wake();
    }
  };

  const start = async (taken: readonly DeliveryClaim[], at: number): Promise<void> => {
    const ids = [...new Set(taken.map(({ webhook_id }) => webhook_id))];
    const targets = await options.targetsOf(ids).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'endpoints could not be read');
      return new Map<string, Target>();
    });
    await Promise.all(taken.map((claim) => attempt(claim, targets.get(claim.webhook_id), at)));
  };

  const freePlaces = async (): Promise<void> => {
    const batch = ended;
    if (batch.length === 0) return;
    ended = [];
    await claims.end(batch).catch((error: unknown) => {
      ended.push(...batch);
      throw error;
    });
  };

  /** @returns whether anything was begun */
  const take = async (wanted: readonly Wanted[]): Promise<boolean> => {
    if (wanted.length === 0) return false;
    const at = clock.now();
    const taken = await claims.take(wanted, at);
    for (const one of taken) lanes.taken(one);
    const begun = taken.flatMap((one) => one.claims);
    if (begun.length === 0) return false;
    held.add(begun);
    const work = start(begun, at).finally(() => running.delete(work));
    running.add(work);
    return true;
  };

  const turn = async (): Promise<void> => {
    const wanted = journal.isBehind() ? [] : lanes.plan(clock.now());
    try {
      const isCrowd = ended.length > 0;
      await freePlaces();
      const begun = await take(wanted);
      if (begun || isCrowd) await setTimeout(GATHER_MS);
    } catch (error) {
      log.warn({ error: String(error) }, 'deliveries could not be claimed');
      for (const one of wanted) lanes.notTaken(one, clock.now());
      await wakeup.wait(AGAIN_MS, stopping.signal);
    }
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await turn();
      const ms = ended.length > 0 ? 0 : journal.isBehind() ? POLL_MS : lanes.nextIn(clock.now());
      if (ms > 0) await wakeup.wait(Math.min(ms, POLL_MS), stopping.signal);
    }
  })();

  return {
    onNotification: watch.heard,
    stop: async () => {
      stopping.abort();
      await loop;
      const late = new AbortController();
      await Promise.race([
        Promise.all(running),
        setTimeout(RUNNING_END_MS, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
      // What is cut off now is no outcome: it is attempted again when its lease has ended.
      abandoned = true;
      await journal.close(WRITTEN_MS);
      await freePlaces().catch(() => undefined);
      await watch.stop();
      await held.stop();
    },
  };
};
