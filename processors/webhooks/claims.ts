import type pg from 'pg';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import { HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER } from '../../domain/webhooks/events.ts';
import { reportAhead } from '../../platform/ahead.ts';
import { createSemaphore } from '../../platform/semaphore.ts';

/** One claimed attempt of this worker. */
export interface DeliveryClaim {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly event_id: string;
  /** The envelope's `created_at`, ISO 8601 as PostgreSQL writes it. */
  readonly created_at: string;
  readonly cycle: number;
  readonly attempt: number;
  /** Duration of the delivery's retry cycle when the attempt was claimed, milliseconds. */
  readonly ran_ms: number;
  /** Whether a fast clock had scheduled the attempt too late. */
  readonly ahead: boolean;
}

/** A request for up to `count` claims of one endpoint, and its result. */
export interface Wanted {
  readonly webhookId: string;
  readonly count: number;
}
export interface Taken {
  readonly webhookId: string;
  readonly claims: readonly DeliveryClaim[];
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  readonly againAt: number;
}

/** A claim whose attempt has ended. */
export interface EndedAttempt {
  readonly claim: DeliveryClaim;
  /** null: the attempt had no result, so the circuit breaker ignores it. */
  readonly succeeded: boolean | null;
}

export interface ClaimRules {
  readonly holder: string;
  /** Longer than the longest attempt. */
  readonly leaseMs: number;
  /** Read models that must have applied the log up to the delivery's position before it is claimed. */
  readonly projections: readonly string[];
  /** Limits of one endpoint over all workers: concurrent attempts, and starts per second. */
  readonly concurrency: number;
  readonly startsPerSecond: number;
  readonly probeEveryMs: number;
}

/** Manages the claims of one worker through the functions of `claims.sql`. `now` in milliseconds. */
export class DeliveryClaims {
  readonly #pool: pg.Pool;
  readonly #rules: ClaimRules;
  /** Of statements about claims that are held: each locks many of the same rows, in an order of its own. */
  readonly #oneAtATime = createSemaphore({ limit: 1 });

  constructor(pool: pg.Pool, rules: ClaimRules) {
    this.#pool = pool;
    this.#rules = rules;
  }

  /** Claims due deliveries of these endpoints within their limits. */
  async take(wanted: readonly Wanted[], now: number): Promise<Taken[]> {
    const { holder, leaseMs, projections, concurrency, startsPerSecond, probeEveryMs } = this.#rules;
    const { rows } = await this.#pool.query<{
      webhook_id: string;
      claims: Omit<DeliveryClaim, 'webhook_id'>[];
      again_at: Date | null;
    }>({
      name: 'claim_attempts',
      text: 'select * from work.claim_attempts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
      values: [
        holder,
        wanted.map(({ webhookId }) => webhookId),
        wanted.map(({ count }) => count),
        new Date(now),
        new Date(now + leaseMs),
        projections,
        concurrency,
        startsPerSecond,
        BREAKER_OPENS_AFTER,
        probeEveryMs,
      ],
    });
    reportAhead('delivery', rows.flatMap(({ claims }) => claims.filter(({ ahead }) => ahead)).length);
    return rows.map(({ webhook_id, claims, again_at }) => ({
      webhookId: webhook_id,
      claims: claims.map((claim) => ({ ...claim, webhook_id })),
      againAt: again_at?.getTime() ?? Number.POSITIVE_INFINITY,
    }));
  }

  /** Records that attempts no longer run; their claims stay until `release`. */
  async recordEnded(ended: readonly EndedAttempt[]): Promise<void> {
    const claims = ended.map(({ claim }) => claim);
    await this.#change({
      name: 'record_ended_attempts',
      text: 'select work.record_ended_attempts($1, $2, $3, $4, $5, $6)',
      values: [
        ...this.#keys(claims),
        claims.map((claim) => claim.webhook_id),
        ended.map(({ succeeded }) => succeeded),
      ],
    });
  }

  /** Releases claims whose outcomes are projected. */
  async release(claims: readonly DeliveryClaim[]): Promise<void> {
    await this.#change({
      name: 'release_claims',
      text: `delete from work.delivery_claim c
               using unnest($2::uuid[], $3::integer[], $4::integer[]) as e (delivery_id, cycle, attempt)
               where c.delivery_id = e.delivery_id and c.cycle = e.cycle and c.attempt = e.attempt and c.holder = $1`,
      values: this.#keys(claims),
    });
  }

  async renew(claims: readonly DeliveryClaim[], now: number): Promise<void> {
    await this.#change({
      name: 'renew_deliveries',
      text: `update work.delivery_claim c set lease_until = $5
               from unnest($2::uuid[], $3::integer[], $4::integer[]) as e (delivery_id, cycle, attempt)
               where c.delivery_id = e.delivery_id and c.cycle = e.cycle and c.attempt = e.attempt and c.holder = $1`,
      values: [...this.#keys(claims), new Date(now + this.#rules.leaseMs)],
    });
  }

  #change(statement: pg.QueryConfig): Promise<unknown> {
    return this.#oneAtATime.enter(() => this.#pool.query(statement));
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

/** An endpoint with pending deliveries. */
export interface Waiting {
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly paused: boolean;
  readonly breaker_open: boolean;
  /** Of its earliest pending delivery; null: the endpoint is paused. */
  readonly next_attempt_at: Date | null;
}

/**
 * Loads all endpoints with pending deliveries, of every worker. `now` in milliseconds. Sorted, so that the search for a
 * delivery that a fast clock recorded uses its index instead of reading all deliveries that wait for a retry.
 */
export const readWaiting = async (pool: pg.Pool, now: number): Promise<Waiting[]> => {
  const { rows } = await pool.query<Waiting>({
    name: 'waiting_endpoints',
    text: `select h.webhook_id, h.partner_id, h.paused_at is not null as paused, h.failures_in_row >= $1 as breaker_open,
                  case when a.next_attempt_at is null then n.next_attempt_at else $2 end as next_attempt_at
           from read.webhook_health h
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and d.state = 'pending' and h.paused_at is null
             order by d.next_attempt_at limit 1) n on true
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and d.state = 'pending' and h.paused_at is null
               and case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end > $3
             order by case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end desc
             limit 1) a on n.next_attempt_at > $2
           where h.pending > 0 and h.deleted_at is null`,
    values: [BREAKER_OPENS_AFTER, new Date(now), new Date(aheadAfter(now))],
  });
  return rows;
};

/** Deletes claims of dead workers, whose leases ended. `now` in milliseconds. */
export const sweepDeliveryClaims = async (pool: pg.Pool, now: number): Promise<void> => {
  await pool.query('delete from work.delivery_claim where lease_until < $1 or lease_until > $2', [
    new Date(now - MINUTE),
    new Date(now + HOUR),
  ]);
};
