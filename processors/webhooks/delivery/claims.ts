import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { HOUR, MINUTE } from '../../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, type DeliveryRef } from '../../../domain/webhooks/events.ts';
import type { Position } from '../../../event-store/port.ts';
import { type Clock, reportFutureTime } from '../../../platform/clock/clock.ts';
import { createSemaphore } from '../../../platform/limits/semaphore.ts';

/** One claimed attempt of this worker. */
export interface DeliveryClaim extends DeliveryRef {
  readonly event_id: string;
  /** Whether the newest secret alone signs, and the circuit breaker ignores the outcome. */
  readonly newest_secret_only: boolean;
  /** The envelope's `created_at`, ISO 8601 as PostgreSQL writes it. */
  readonly created_at: string;
  readonly cycle: number;
  readonly attempt: number;
  /** Duration of the delivery's retry cycle when the attempt was claimed, milliseconds. */
  readonly ran_ms: number;
  /** Whether a fast clock had scheduled the attempt too late. */
  readonly ahead: boolean;
  /** Whether its body was stored when the attempt was claimed. */
  readonly has_body: boolean;
}

/** A request for up to `count` claims of one endpoint. */
export interface ClaimRequest {
  readonly webhookId: string;
  readonly count: number;
}
export interface ClaimResult {
  readonly webhookId: string;
  readonly claims: readonly DeliveryClaim[];
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  readonly againAt: number;
}

/** A claim whose attempt has ended. */
export interface EndedAttempt {
  readonly claim: DeliveryClaim;
  /** null: the circuit breaker ignores the attempt, because it had no result or was the test of a rotation. */
  readonly succeeded: boolean | null;
}

export interface ClaimRules {
  readonly holder: string;
  /** Longer than the longest attempt. */
  readonly leaseMs: number;
  /** Read models that must have applied the log up to the delivery's position before it is claimed. */
  readonly projections: readonly string[];
  /** Read models that must have applied the event that the delivery speaks of. */
  readonly sources: readonly string[];
  /** Limits of one endpoint over all workers: concurrent attempts, and starts per second. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  readonly probeEveryMs: number;
}

/** Joins the rows `c` of the claims that `#keys` names. */
const OWN = `
  unnest($2::uuid[], $3::integer[], $4::integer[]) as e (delivery_id, cycle, attempt)
  where c.delivery_id = e.delivery_id and c.cycle = e.cycle and c.attempt = e.attempt and c.holder = $1`;

const RECORD =
  'work.record_ended_attempts($1, $2::uuid[], $3::integer[], $4::integer[], $5::uuid[], $6::boolean[])';
/** The claims read the holder from `ended`, so that PostgreSQL records before it claims. */
const RECORD_AND_CLAIM = `
  with ended as materialized (select $1::uuid as holder, ${RECORD})
  select claimed.*
  from ended, lateral work.claim_attempts(ended.holder, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) claimed`;

/** Manages the claims of one worker through the functions of `claims.sql`. `now` in milliseconds. */
export class DeliveryClaims {
  readonly #pool: pg.Pool;
  readonly #rules: ClaimRules;
  /** Serialises statements about held claims: each locks many of the same rows, in an order of its own. */
  readonly #oneAtATime = createSemaphore({ limit: 1 });

  constructor(pool: pg.Pool, rules: ClaimRules) {
    this.#pool = pool;
    this.#rules = rules;
  }

  /** Records the attempts that have ended, and claims due deliveries of these endpoints within their limits: both or neither. */
  async take(
    wanted: readonly ClaimRequest[],
    now: number,
    ended: readonly EndedAttempt[] = [],
  ): Promise<ClaimResult[]> {
    const { leaseMs, projections, sources, concurrency, startsPerSecond, probeEveryMs } = this.#rules;
    const { rows } = await this.#change<{
      webhook_id: string;
      claims: Omit<DeliveryClaim, 'webhook_id'>[];
      again_at: Date | null;
    }>({
      name: 'claim_attempts',
      text: RECORD_AND_CLAIM,
      values: [
        ...this.#ended(ended),
        wanted.map(({ webhookId }) => webhookId),
        wanted.map(({ count }) => count),
        new Date(now),
        new Date(now + leaseMs),
        projections,
        sources,
        concurrency,
        startsPerSecond,
        BREAKER_OPENS_AFTER,
        probeEveryMs,
      ],
    });
    reportFutureTime('delivery', rows.flatMap(({ claims }) => claims.filter(({ ahead }) => ahead)).length);
    return rows.map(({ webhook_id, claims, again_at }) => ({
      webhookId: webhook_id,
      claims: claims.map((claim) => ({ ...claim, webhook_id })),
      againAt: again_at?.getTime() ?? Number.POSITIVE_INFINITY,
    }));
  }

  /** Records that attempts no longer run; their claims stay until `release`. */
  async recordEnded(ended: readonly EndedAttempt[]): Promise<void> {
    await this.#change({
      name: 'record_ended_attempts',
      text: `select ${RECORD}`,
      values: this.#ended(ended),
    });
  }

  /** Releases claims whose outcomes are projected. */
  async release(claims: readonly DeliveryClaim[]): Promise<void> {
    await this.#change({
      name: 'release_claims',
      text: `delete from work.delivery_claim c using ${OWN}`,
      values: this.#keys(claims),
    });
  }

  async renew(claims: readonly DeliveryClaim[], now: number): Promise<void> {
    await this.#change({
      name: 'renew_deliveries',
      text: `update work.delivery_claim c set lease_until = $5 from ${OWN}`,
      values: [...this.#keys(claims), new Date(now + this.#rules.leaseMs)],
    });
  }

  #change<Row extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    return this.#oneAtATime.enter(() => this.#pool.query<Row>(statement));
  }

  #ended(ended: readonly EndedAttempt[]) {
    const claims = ended.map(({ claim }) => claim);
    return [
      ...this.#keys(claims),
      claims.map((claim) => claim.webhook_id),
      ended.map(({ succeeded }) => succeeded),
    ];
  }

  #keys(claims: readonly DeliveryClaim[]) {
    return [
      this.#rules.holder,
      claims.map((claim) => claim.delivery_id),
      claims.map((claim) => claim.cycle),
      claims.map((claim) => claim.attempt),
    ];
  }
}

export interface HeldClaimsOptions {
  readonly claims: DeliveryClaims;
  readonly clock: Clock;
  readonly log: Logger;
  /** Waits until the read model of deliveries reaches the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
}

const RELEASE_EVERY_MS = 500;
const RETRY_MS = 500;
const RENEW_EVERY_MS = 5_000;

/** Renews this worker's claims until their outcomes are in the read model, which makes the next attempt due. */
export class HeldClaims {
  readonly #options: HeldClaimsOptions;
  readonly #renewed = new Set<DeliveryClaim>();
  #toRelease: DeliveryClaim[] = [];
  #stopped = false;
  #working: Promise<void> = Promise.resolve();
  #renewedAt = performance.now();
  /** Runs while a claim is held. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HeldClaimsOptions) {
    this.#options = options;
  }

  add(claims: readonly DeliveryClaim[]): void {
    for (const claim of claims) this.#renewed.add(claim);
    this.#timer ??= setInterval(() => this.#tend(), RELEASE_EVERY_MS);
  }

  /** Releases and renews once, after an earlier run has ended. */
  #tend(): void {
    this.#working = this.#working
      .then(() => this.#releaseBatch())
      .then(() => this.#renew())
      .catch((error: unknown) =>
        this.#options.log.warn(
          { error: String(error) },
          'delivery claims were not renewed or released; retry scheduled',
        ),
      )
      // At the end, because a release that fails puts its claims back.
      .then(() => this.#stopTimerIfNoneIsHeld());
  }

  #stopTimerIfNoneIsHeld(): void {
    if (this.#renewed.size + this.#toRelease.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Releases claims after their outcomes, the last at `position`, are projected. */
  async releaseAfter(claims: readonly DeliveryClaim[], position: Position | null): Promise<void> {
    for (let known = false; !known; ) {
      if (this.#stopped) return;
      known = await this.#options.projected(position).catch(() => setTimeout(RETRY_MS, false));
    }
    for (const claim of claims) this.release(claim);
  }

  /** Releases a claim. If it has no outcome, the attempt is repeated a little later. */
  release(claim: DeliveryClaim): void {
    this.#renewed.delete(claim);
    this.#toRelease.push(claim);
  }

  /** Stops renewals; the remaining claims end with their leases. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#working;
    await this.#releaseBatch().catch(() => undefined);
  }

  async #releaseBatch(): Promise<void> {
    const batch = this.#toRelease;
    this.#toRelease = [];
    if (batch.length === 0) return;
    await this.#options.claims.release(batch).catch((error: unknown) => {
      this.#toRelease.push(...batch);
      throw error;
    });
  }

  async #renew(): Promise<void> {
    if (this.#renewed.size === 0 || performance.now() - this.#renewedAt < RENEW_EVERY_MS) return;
    this.#renewedAt = performance.now();
    await this.#options.claims.renew([...this.#renewed], this.#options.clock.now());
  }
}

/** Deletes claims of dead workers, whose leases ended. `now` in milliseconds. */
export async function sweepDeliveryClaims(pool: pg.Pool, now: number): Promise<void> {
  await pool.query('delete from work.delivery_claim where lease_until < $1 or lease_until > $2', [
    new Date(now - MINUTE),
    new Date(now + HOUR),
  ]);
}
