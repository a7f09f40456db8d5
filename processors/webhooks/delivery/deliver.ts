import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { DeliveryError } from '../../../domain/webhooks/events.ts';
import { probeEveryMs } from '../../../domain/webhooks/schedule.ts';
import type { Position } from '../../../event-store/port.ts';
import { createWakeup, endsWithin, pause } from '../../../platform/clock/waiting.ts';
import { Counts } from '../../../platform/limits/coalesce.ts';
import type { ProcessorDeps } from '../../deps.ts';
import { recordExpiredDeliveries } from '../expire-deliveries.ts';
import { type AttemptDeps, type Body, inAttemptSpan, makeAttempt, type Target } from './attempt.ts';
import {
  type ClaimRequest,
  type ClaimResult,
  type DeliveryClaim,
  DeliveryClaims,
  type EndedAttempt,
  HeldClaims,
} from './claims.ts';
import { findDueEndpoints, type Watched } from './due-endpoints.ts';
import { OutcomeWriter } from './outcome-writer.ts';

/** Ceilings of concurrent attempts in this process. */
interface ConcurrencyLimits {
  readonly ofEndpoint: number;
  readonly ofPartner: number;
  readonly ofProcess: number;
}

interface ScheduledEndpoint {
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  pollAt: number;
  running: number;
  readonly partnerId: string;
}

export const MAX_ENDPOINTS_PER_POLL = 64;

/** Decides which endpoints this worker polls next: the one that has been due longest first, within the ceilings of concurrency. */
export class EndpointScheduler {
  readonly #limits: ConcurrencyLimits;
  readonly #endpoints = new Map<string, ScheduledEndpoint>();
  readonly #runningOfPartner = new Counts();
  #running = 0;

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits;
  }

  /** Polls the endpoint from `at` (milliseconds) on. */
  schedule(webhookId: string, partnerId: string, at: number): void {
    const known = this.#endpoints.get(webhookId);
    if (known) known.pollAt = Math.min(known.pollAt, at);
    else this.#endpoints.set(webhookId, { pollAt: at, running: 0, partnerId });
  }

  /** Returns the endpoints to poll now, the one that has been due longest first. They are not polled again until `onClaimed`. */
  plan(now: number): ClaimRequest[] {
    const due: [string, ScheduledEndpoint][] = [];
    for (const [webhookId, endpoint] of this.#endpoints) {
      if (endpoint.pollAt <= now) due.push([webhookId, endpoint]);
      else if (endpoint.running === 0 && endpoint.pollAt === Number.POSITIVE_INFINITY)
        this.#endpoints.delete(webhookId);
    }
    due.sort(([, one], [, other]) => one.pollAt - other.pollAt);

    const wanted: ClaimRequest[] = [];
    const reserved = new Counts();
    let reservedInAll = 0;
    for (const [webhookId, endpoint] of due) {
      if (wanted.length === MAX_ENDPOINTS_PER_POLL) break;
      const count = this.#freeOf(endpoint, reserved.of(endpoint.partnerId), reservedInAll);
      if (count < 1) continue;
      endpoint.pollAt = Number.POSITIVE_INFINITY;
      reserved.add(endpoint.partnerId, count);
      reservedInAll += count;
      wanted.push({ webhookId, count });
    }
    return wanted;
  }

  /** Counts the attempts that start, and schedules the next poll. */
  onClaimed({ webhookId, claims, againAt }: ClaimResult): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) return;
    this.#addRunning(endpoint, claims.length);
    endpoint.pollAt = Math.min(endpoint.pollAt, againAt);
  }

  onNotClaimed({ webhookId }: ClaimRequest, againAt: number): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (endpoint) endpoint.pollAt = Math.min(endpoint.pollAt, againAt);
  }

  onEnded(webhookId: string): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (endpoint) this.#addRunning(endpoint, -1);
  }

  /** Returns the milliseconds until the next poll of an endpoint that may have another attempt. */
  nextIn(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const endpoint of this.#endpoints.values()) {
      if (endpoint.pollAt < next && this.#freeOf(endpoint) > 0) next = endpoint.pollAt;
    }
    return Math.max(0, next - now);
  }

  #freeOf({ running, partnerId }: ScheduledEndpoint, reservedOfPartner = 0, reservedInAll = 0): number {
    return Math.min(
      this.#limits.ofEndpoint - running,
      this.#limits.ofPartner - this.#runningOfPartner.of(partnerId) - reservedOfPartner,
      this.#limits.ofProcess - this.#running - reservedInAll,
    );
  }

  #addRunning(endpoint: ScheduledEndpoint, more: number): void {
    this.#running += more;
    endpoint.running += more;
    this.#runningOfPartner.add(endpoint.partnerId, more);
  }
}

export interface DeliverOptions extends AttemptDeps, ProcessorDeps {
  readonly log: Logger;
  /** Read models that must have applied the log up to the delivery's position before it is claimed. */
  readonly projections: readonly string[];
  /** Read models that must have applied the event that the delivery speaks of. */
  readonly sources: readonly string[];
  /** Waits until the read model of deliveries reaches the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  /** Limits of one endpoint over all processes: concurrent attempts, and starts per second. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  /** Number of endpoints whose concurrency a partner may use in this process. */
  readonly endpointsPerPartner: number;
  readonly onOutcome: (error: DeliveryError | null, state: 'pending' | 'delivered' | 'failed') => void;
  readonly onWatched: (watched: Watched) => void;
}

/** Per process. */
const MAX_CONCURRENT_ATTEMPTS = 2_048;
/** Three times the longest attempt, so that a delayed renewal does not lose a claim. */
const LEASE_MS = 30_000;
/** Deliveries that become due or end within this time share the next poll. */
const GATHER_MS = 5;
/** Maximum wait between polls. Short, because the wall clock may jump. */
const MAX_IDLE_MS = 2_000;
const RETRY_MS = 500;
/** When a delivery whose attempt had no outcome is polled again: `HeldClaims` has released its claim before, within half a second. */
const RECLAIM_MS = 1_000;
/** For how long a claim vouches that its body is stored: an erasure holds everywhere within a second (docs/privacy.md). */
const MAX_BODY_AGE_MS = 500;
/** A process must stop within ten seconds, all of its components included. */
const RUNNING_END_MS = 4_000;
const WRITE_END_MS = 1_500;

/**
 * Makes the attempts that are due, in any number of processes: PostgreSQL enforces the limits of an endpoint
 * (`claims.sql`). Endpoints with due deliveries are named by the projection's notifications and by polls (`due-endpoints.ts`),
 * and `EndpointScheduler` says which is claimed next. An attempt counts against the concurrency until it ends; its claim
 * stays until its outcome is in the read model.
 */
export const startDeliveries = (options: DeliverOptions) => new DeliveryWorker(options);

class DeliveryWorker {
  readonly #options: DeliverOptions;
  readonly #stopping = new AbortController();
  readonly #wakeup = createWakeup();
  readonly #scheduler: EndpointScheduler;
  readonly #claims: DeliveryClaims;
  readonly #held: HeldClaims;
  readonly #outcomes: OutcomeWriter;
  readonly #dueEndpoints: ReturnType<typeof findDueEndpoints>;
  readonly #running = new Set<Promise<void>>();
  #ended: EndedAttempt[] = [];
  /** Set when the worker no longer waits for its attempts. */
  #abandoned = false;
  readonly #loop: Promise<void>;

  constructor(options: DeliverOptions) {
    this.#options = options;
    this.#scheduler = new EndpointScheduler({
      ofEndpoint: options.concurrency,
      ofPartner: options.endpointsPerPartner * options.concurrency,
      ofProcess: MAX_CONCURRENT_ATTEMPTS,
    });
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
    this.#dueEndpoints = findDueEndpoints({
      ...options,
      schedule: (webhookId, partnerId, at) => this.#schedule(webhookId, partnerId, at),
    });
    this.#loop = this.#pollUntilStopped();
  }

  /** Schedules the endpoints that the read model's notification names. */
  onNotification(notification: string): void {
    this.#dueEndpoints.onNotification(notification);
  }

  /** Waits for running attempts, up to a time limit. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await endsWithin(Promise.all(this.#running), RUNNING_END_MS);
    // An attempt that is cut off has no outcome; it is repeated after its lease.
    this.#abandoned = true;
    await this.#outcomes.close(WRITE_END_MS);
    await this.#recordAndClaim([]).catch(() => undefined);
    await this.#dueEndpoints.stop();
    await this.#held.stop();
  }

  #schedule(webhookId: string, partnerId: string, at: number): void {
    this.#scheduler.schedule(webhookId, partnerId, at);
    this.#wakeup.wake();
  }

  async #pollUntilStopped(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#poll();
      const idleMs = this.#outcomes.isBehind() ? RETRY_MS : this.#scheduler.nextIn(this.#options.clock.now());
      const ms = this.#ended.length > 0 ? 0 : idleMs;
      if (ms > 0) await this.#wakeup.wait(Math.min(ms, MAX_IDLE_MS), this.#stopping.signal);
    }
  }

  async #poll(): Promise<void> {
    const { clock, log } = this.#options;
    const wanted = this.#outcomes.isBehind() ? [] : this.#scheduler.plan(clock.now());
    try {
      const hasEnded = this.#ended.length > 0;
      const hasStarted = await this.#claimAndStart(wanted);
      // Deliveries that become due or end meanwhile share the next poll.
      if (hasStarted || hasEnded) await pause(GATHER_MS, this.#stopping.signal);
    } catch (error) {
      log.warn({ error: String(error) }, 'deliveries could not be claimed; retry scheduled');
      for (const one of wanted) this.#scheduler.onNotClaimed(one, clock.now());
      await this.#wakeup.wait(RETRY_MS, this.#stopping.signal);
    }
  }

  /** @returns whether an attempt starts */
  async #claimAndStart(wanted: readonly ClaimRequest[]): Promise<boolean> {
    const claimedAt = performance.now();
    const results = await this.#recordAndClaim(wanted);
    for (const one of results) this.#scheduler.onClaimed(one);
    const claims = results.flatMap((one) => one.claims);
    if (claims.length === 0) return false;
    this.#held.add(claims);
    const work = this.#attemptAll(claims, claimedAt).finally(() => this.#running.delete(work));
    this.#running.add(work);
    return true;
  }

  /** Records the attempts that have ended, and claims others in the same statement. */
  async #recordAndClaim(wanted: readonly ClaimRequest[]): Promise<readonly ClaimResult[]> {
    const batch = this.#ended;
    if (batch.length + wanted.length === 0) return [];
    this.#ended = [];
    try {
      if (wanted.length > 0) return await this.#claims.take(wanted, this.#options.clock.now(), batch);
      await this.#claims.recordEnded(batch);
      return [];
    } catch (error) {
      this.#ended.push(...batch);
      throw error;
    }
  }

  /** Each by itself: a body that is not answered holds up no other attempt. `claimedAt`: by the monotonic clock, milliseconds. */
  async #attemptAll(claims: readonly DeliveryClaim[], claimedAt: number): Promise<void> {
    const { log, targetsOf } = this.#options;
    const targets = targetsOf([...new Set(claims.map(({ webhook_id }) => webhook_id))]).catch(
      (error: unknown) => {
        log.warn({ error: String(error) }, 'endpoints could not be read; their deliveries are claimed again');
        return new Map<string, Target>();
      },
    );
    await Promise.all(
      claims.map(async (claim) => {
        // Beside its endpoint: a backlog waits for each read before a free slot is used.
        const body = claim.has_body ? this.#readBody(claim, 'remembered') : null;
        const target = (await targets).get(claim.webhook_id);
        const isFresh = performance.now() - claimedAt < MAX_BODY_AGE_MS;
        await this.#attempt(claim, target, await (isFresh ? body : this.#readBody(claim, 'stored')));
      }),
    );
  }

  #readBody({ event_id, delivery_id }: DeliveryClaim, manner: 'remembered' | 'stored'): Promise<Body> {
    const { log, bodyOf } = this.#options;
    return bodyOf(event_id, manner).catch((error: unknown) => {
      log.warn(
        { error: String(error), delivery: delivery_id },
        'a body could not be read; its delivery is claimed again',
      );
      return null;
    });
  }

  async #attempt(claim: DeliveryClaim, target: Target | undefined, body: Body): Promise<void> {
    const { store, clock, log, onOutcome } = this.#options;
    let succeeded: boolean | null = null;
    try {
      await inAttemptSpan(store, claim, async (sent) => {
        const outcome = await makeAttempt(this.#options, claim, target, body);
        if (outcome === 'unreadable')
          await recordExpiredDeliveries(this.#options, [
            { ...claim, created_at: new Date(claim.created_at) },
          ]);
        else if (outcome !== null) sent(outcome);
        if (this.#abandoned) return;
        if (outcome === null || outcome === 'unreadable') {
          this.#release(claim);
          return;
        }
        succeeded = claim.newest_secret_only ? null : outcome.error === null;
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
      this.#scheduler.onEnded(claim.webhook_id);
      this.#wakeup.wake();
    }
  }

  #release(claim: DeliveryClaim): void {
    this.#held.release(claim);
    this.#schedule(claim.webhook_id, claim.partner_id, this.#options.clock.now() + RECLAIM_MS);
  }
}
