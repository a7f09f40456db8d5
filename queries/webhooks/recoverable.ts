/** What a recovery of an endpoint covers: deliveries that failed, or that wait since a failure or behind the open breaker. */
import type pg from 'pg';
import { BREAKER_OPENS_AFTER, deliveredTypeSchema } from '../../domain/webhooks/events.ts';

export interface Recoverable {
  readonly webhookId: string;
  /** ISO 8601; deliveries that were created from then on. */
  readonly since: string;
  /** Whether the endpoint's breaker is open, so that each pending delivery waits behind it. */
  readonly heldBack: boolean;
  /** Milliseconds; an expired payload cannot be sent again. */
  readonly now: number;
}

const STATES = ['pending', 'failed'] as const;
type RecoverableState = (typeof STATES)[number];

const values = ({ webhookId, since, heldBack, now }: Recoverable): unknown[] => [
  webhookId,
  since,
  heldBack,
  new Date(now),
];

/** One walk along the index for each state and type. `more`: a further condition. */
const walk = (state: RecoverableState, type: string, columns: string, more: string): string => `
  (select ${columns} from read.webhook_delivery
   where webhook_id = $1 and state = '${state}' and type = '${type}' and created_at >= $2 and payload_expires_at > $4
     and ${state === 'pending' ? '($3::boolean or cycle_attempts > 0)' : '$3::boolean is not null'} ${more})`;

const walks = (states: readonly RecoverableState[], columns: string, more: string): string =>
  states
    .flatMap((state) => deliveredTypeSchema.options.map((type) => walk(state, type, columns, more)))
    .join(' union all ');

const COUNT = `select count(*)::float8 as deliveries from (select from (${walks(STATES, '1', 'limit $5')}) walked limit $5) counted`;

/** Counts what a recovery would cover, up to `limit`. */
export async function countRecoverable(pool: pg.Pool, what: Recoverable, limit: number): Promise<number> {
  const { rows } = await pool.query<{ deliveries: number }>(COUNT, [...values(what), limit]);
  return rows[0]?.deliveries ?? 0;
}

/** A delivery that a recovery makes due. */
export interface RecoverableDelivery {
  readonly delivery_id: string;
  readonly event_id: string;
  readonly state: RecoverableState;
  readonly cycle: number;
  readonly created_at: Date;
  /** PostgreSQL's text of `created_at` with its microseconds, and bigint as text. */
  readonly cursor: readonly [createdAt: string, position: string];
}

const COLUMNS = 'delivery_id, event_id, state, cycle, created_at, position';
const NEXT = `and (created_at, position) > ($5::timestamptz, $6::bigint) and position < $7
     and recovery_id is distinct from $8 order by created_at, position limit $9`;
const pageText = (state: RecoverableState): string => `
  select delivery_id, event_id, state, cycle, created_at, json_build_array(created_at::text, position::text) as cursor
  from (${walks([state], COLUMNS, NEXT)}) page order by created_at, position limit $9`;
const PAGE = { pending: pageText('pending'), failed: pageText('failed') };

/** Yields what a recovery still has to make due, the oldest first, in pages. `position`: that of its request. */
export async function* pagesOfRecoverable(
  pool: pg.Pool,
  what: Recoverable & { readonly recoveryId: string; readonly position: string },
  pageSize: number,
): AsyncGenerator<readonly RecoverableDelivery[]> {
  for (const state of STATES) {
    let after: readonly [string, string] = [what.since, '-1'];
    for (;;) {
      const { rows } = await pool.query<RecoverableDelivery>({
        name: `recoverable_${state}`,
        text: PAGE[state],
        values: [...values(what), ...after, what.position, what.recoveryId, pageSize],
      });
      const last = rows.at(-1);
      if (last !== undefined) yield rows;
      if (last === undefined || rows.length < pageSize) break;
      after = last.cursor;
    }
  }
}

/** Returns whether the endpoint's breaker is open, and whether any delivery of its recovery is pending. */
export async function readRecoveryState(
  pool: pg.Pool,
  webhookId: string,
  recoveryId: string | null,
): Promise<{ readonly held_back: boolean; readonly has_pending: boolean }> {
  const { rows } = await pool.query<{ held_back: boolean; has_pending: boolean }>({
    name: 'recovery_state',
    text: `select coalesce((select failures_in_row >= $2 from read.webhook_health where webhook_id = $1), false) as held_back,
                  coalesce((select pending > 0 from read.webhook_recovery where recovery_id = $3), true) as has_pending`,
    values: [webhookId, BREAKER_OPENS_AFTER, recoveryId],
  });
  return rows[0] ?? { held_back: false, has_pending: true };
}

/** A recovery that has not made all of its deliveries due. */
export interface OpenRecovery {
  readonly recovery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly since: Date;
  readonly held_back: boolean;
  readonly created_at: Date;
  readonly position: string;
  /** A deleted endpoint takes nothing any more. */
  readonly deleted: boolean;
}

const MAX_OPEN = 100;

/** Lists open recoveries, the oldest first. */
export async function listOpenRecoveries(pool: pg.Pool): Promise<OpenRecovery[]> {
  const { rows } = await pool.query<OpenRecovery>({
    name: 'open_recoveries',
    text: `select r.recovery_id, r.webhook_id, r.partner_id, r.since, r.held_back, r.created_at, r.position::text,
                  coalesce((select deleted_at is not null from read.webhook_health h where h.webhook_id = r.webhook_id), true) as deleted
           from read.webhook_recovery r where r.completed_at is null
           order by r.created_at limit ${MAX_OPEN}`,
  });
  return rows;
}
