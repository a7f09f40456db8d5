import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { DeliveryError } from '../../domain/webhooks/events.ts';
import { probeEveryMs } from '../../domain/webhooks/schedule.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { BUSY_GATHER_MS } from '../../platform/event-loop.ts';
import { endsWithin, pause } from '../../platform/pause.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { type AttemptDeps, makeAttempt, type Target } from './attempt.ts';
import { inAttemptSpan } from './attempt-span.ts';
import { type DeliveryClaim, DeliveryClaims, type EndedAttempt, type Wanted } from './claims.ts';
import { expireDelivery } from './expire-deliveries.ts';
import { HeldClaims } from './held-claims.ts';
import { Lanes, MAX_ENDPOINTS_PER_POLL } from './lanes.ts';
import { OutcomeWriter } from './outcome-writer.ts';
import { createStartsPace, type StartsPace } from './starts-pace.ts';
import { startWatch, type Watch, type Watched } from './watch.ts';

export interface DeliverOptions extends AttemptDeps {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly log: Logger;
  /** Read models that must have applied the log up to the delivery's position before it is claimed. */
  readonly projections: readonly string[];
  /** Waits until the read model of deliveries reaches the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  /** Limits of one endpoint over all processes: concurrent attempts, and starts per second. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  /** Returns a further limit of a partner's concurrent attempts in this process. */
  readonly roomOfPartner?: (partnerId: string) => number;
  readonly isEventLoopBusy: () => boolean;
  readonly onOutcome: (error: DeliveryError | null, state: 'pending' | 'delivered' | 'failed') => void;
  readonly onWatched: (watched: Watched) => void;
}

/** The running deliverer of this process. */
export interface RunningDeliverer {
  /** Schedules the endpoints that the read model's notification names. */
  onNotification(notification: string): void;
  /** Waits for running attempts, up to a time limit. */
  stop(): Promise<void>;
}

/** Per process; so many that a few hundred hanging endpoints cannot fill them (see `Lanes`). */
const MAX_CONCURRENT_ATTEMPTS = 2_048;
/** Three times the longest attempt, so that a delayed renewal does not lose a claim. */
const LEASE_MS = 30_000;
/** Deliveries that become due or end within this time share the next poll. */
const GATHER_MS = 5;
/** Short, because the wall clock may jump. */
const POLL_MS = 500;
const RETRY_MS = 500;
/** `HeldClaims` deletes a claim without an outcome within half a second; then its delivery is claimed again. */
const RELEASED_AGAIN_MS = 1_000;
/** A process must stop within ten seconds, all of its components included. */
const RUNNING_END_MS = 4_000;
const WRITE_END_MS = 1_500;

/**
 * Makes the attempts that are due, in any number of processes: PostgreSQL enforces the limits of an endpoint
 * (`claims.sql`). Endpoints with due deliveries are named by the projection's notifications and by polls (`watch.ts`), and
 * `lanes.ts` says when each is claimed next. An attempt counts against the concurrency until it ends; its claim stays until its
 * outcome is in the read model. The file is longer than 200 lines, because the worker's options and its one class are read together.
 */
export const startDeliveries = (options: DeliverOptions): RunningDeliverer => new DeliveryWorker(options);

class DeliveryWorker implements RunningDeliverer {
  readonly #options: DeliverOptions;
  readonly #stopping = new AbortController();
  readonly #wakeup = createWakeup();
  readonly #lanes: Lanes;
  readonly #starts: StartsPace;
  readonly #claims: DeliveryClaims;
  readonly #held: HeldClaims;
  readonly #outcomes: OutcomeWriter;
  readonly #watch: Watch;
  readonly #running = new Set<Promise<void>>();
  #ended: EndedAttempt[] = [];
  /** Set when the worker no longer waits for its attempts. */
  #abandoned = false;
  readonly #loop: Promise<void>;

  constructor(options: DeliverOptions) {
    this.#options = options;
    this.#lanes = new Lanes(options.concurrency, MAX_CONCURRENT_ATTEMPTS, options.roomOfPartner);
    this.#starts = createStartsPace(options.isEventLoopBusy);
    this.#claims = new DeliveryClaims(options.pool, {
      ...options,
      holder: uuid(),
      leaseMs: LEASE_MS,
      probeEveryMs: probeEveryMs(options.retryBaseMs),
    });
    this.#held = new HeldClaims({ ...options, claims: this.#claims });
    this.#outcomes = new OutcomeWriter({
      ...options,
      onWritten: (written, position) => void this.#held.releaseAfter(written, position),
      onForgotten: (claim) => this.#held.release(claim),
    });
    this.#watch = startWatch({ ...options, schedule: this.#schedule });
    this.#loop = this.#pollUntilStopped();
  }

  onNotification(notification: string): void {
    this.#watch.onNotification(notification);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await endsWithin(Promise.all(this.#running), RUNNING_END_MS);
    // An attempt that is cut off has no outcome; it is repeated after its lease.
    this.#abandoned = true;
    await this.#outcomes.close(WRITE_END_MS);
    await this.#recordEnded().catch(() => undefined);
    await this.#watch.stop();
    await this.#held.stop();
  }

  readonly #schedule = (webhookId: string, partnerId: string, at: number): void => {
    this.#lanes.schedule(webhookId, partnerId, at);
    this.#wakeup.wake();
  };

  async #pollUntilStopped(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#poll();
      const idleMs = this.#outcomes.isBehind() ? POLL_MS : this.#nextIn();
      const ms = this.#ended.length > 0 ? 0 : idleMs;
      if (ms > 0) await this.#wakeup.wait(Math.min(ms, POLL_MS), this.#stopping.signal);
    }
  }

  #nextIn(): number {
    const pauseMs = this.#starts.room() < 1 ? BUSY_GATHER_MS : 0;
    return Math.max(pauseMs, this.#lanes.nextIn(this.#options.clock.now()));
  }

  async #poll(): Promise<void> {
    const { clock, log } = this.#options;
    const wanted = this.#outcomes.isBehind() ? [] : this.#lanes.plan(clock.now(), this.#starts.room());
    try {
      const hasEnded = this.#ended.length > 0;
      await this.#recordEnded();
      const hasStarted = await this.#take(wanted);
      if (hasStarted || hasEnded) await this.#gather(wanted.length);
    } catch (error) {
      log.warn({ error: String(error) }, 'deliveries could not be claimed; retry scheduled');
      for (const one of wanted) this.#lanes.onNotClaimed(one, clock.now());
      await this.#wakeup.wait(RETRY_MS, this.#stopping.signal);
    }
  }

  /** Waits for deliveries that can share the next poll; only briefly after a full poll, because further endpoints may be due. */
  #gather(polled: number): Promise<void> {
    const isSmall = polled < MAX_ENDPOINTS_PER_POLL || Number.isFinite(this.#starts.room());
    const ms = isSmall && this.#options.isEventLoopBusy() ? BUSY_GATHER_MS : GATHER_MS;
    return pause(ms, this.#stopping.signal);
  }

  async #recordEnded(): Promise<void> {
    const batch = this.#ended;
    if (batch.length === 0) return;
    this.#ended = [];
    await this.#claims.recordEnded(batch).catch((error: unknown) => {
      this.#ended.push(...batch);
      throw error;
    });
  }

  async #take(wanted: readonly Wanted[]): Promise<boolean> {
    if (wanted.length === 0) return false;
    const taken = await this.#claims.take(wanted, this.#options.clock.now());
    for (const one of taken) this.#lanes.onClaimed(one);
    const claims = taken.flatMap((one) => one.claims);
    if (claims.length === 0) return false;
    this.#starts.started(claims.length);
    this.#held.add(claims);
    const work = this.#start(claims).finally(() => this.#running.delete(work));
    this.#running.add(work);
    return true;
  }

  async #start(claims: readonly DeliveryClaim[]): Promise<void> {
    const { log, targetsOf } = this.#options;
    const ids = [...new Set(claims.map(({ webhook_id }) => webhook_id))];
    const targets = await targetsOf(ids).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'endpoints could not be read; their deliveries are claimed again');
      return new Map<string, Target>();
    });
    await Promise.all(claims.map((claim) => this.#attempt(claim, targets.get(claim.webhook_id))));
  }

  async #attempt(claim: DeliveryClaim, target: Target | undefined): Promise<void> {
    const { store, clock, log, onOutcome } = this.#options;
    let succeeded: boolean | null = null;
    try {
      await inAttemptSpan(store, claim, async (sent) => {
        const outcome = await makeAttempt(this.#options, claim, target);
        if (outcome === 'unreadable') await expireDelivery(this.#options, claim);
        else if (outcome !== null) sent(outcome);
        if (this.#abandoned) return;
        if (outcome === null || outcome === 'unreadable') {
          this.#release(claim);
          return;
        }
        succeeded = outcome.error === null;
        this.#outcomes.add(claim, outcome, clock.now());
        onOutcome(outcome.error, outcome.state);
      });
    } catch (error) {
      log.warn(
        { error: String(error), delivery: claim.delivery_id },
        'delivery attempt had no outcome; repeated after its claim is released',
      );
      this.#release(claim);
    } finally {
      this.#ended.push({ claim, succeeded });
      this.#lanes.ended(claim.webhook_id);
      this.#wakeup.wake();
    }
  }

  #release(claim: DeliveryClaim): void {
    this.#held.release(claim);
    this.#schedule(claim.webhook_id, claim.partner_id, this.#options.clock.now() + RELEASED_AGAIN_MS);
  }
}
