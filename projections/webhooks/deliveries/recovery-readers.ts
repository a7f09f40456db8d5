/** Named readers of recoveries, and of what one covers: deliveries that failed, or that wait since a failure or behind the open breaker. */
import type pg from 'pg';
import { sql } from 'slonik';
import { z } from 'zod';
import { deliveredTypeSchema } from '../../../domain/webhooks/events.ts';
import { columnList, type Reads, readUpToDate } from '../../../queries/reads.ts';
import { fieldsOf } from '../../tables.ts';
import type { DeliveryRow } from './delivery.ts';
import { RECOVERY_COLUMNS, type RecoveryRow } from './recovery.ts';

/** What a partner is not shown of a recovery. */
const HIDDEN = ['webhook_id', 'partner_id', 'held_back', 'position'] as const;
export type Recovery = Readonly<Omit<RecoveryRow, (typeof HIDDEN)[number]>>;
const recovery = z.custom<Recovery>();

/** Finds a recovery of an endpoint's. */
export const findRecovery = (reads: Reads, webhookId: string, recoveryId: string): Promise<Recovery | null> =>
  readUpToDate(reads, () =>
    reads.db.maybeOne(sql.type(recovery)`
      select ${columnList(fieldsOf(RECOVERY_COLUMNS, HIDDEN))} from read.webhook_recovery
      where recovery_id = ${recoveryId} and webhook_id = ${webhookId}`),
  );

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

/**
 * One walk along the index for each state and type. `more`: a further condition. Each walk names $3, because PostgreSQL cannot infer
 * the type of a parameter that no part uses.
 */
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
export interface RecoverableDelivery
  extends Readonly<Pick<DeliveryRow, 'delivery_id' | 'event_id' | 'cycle'>> {
  readonly state: RecoverableState;
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

/** A recovery that has deliveries to make due, or that has ended. */
export interface OpenRecovery
  extends Readonly<
    Pick<RecoveryRow, 'recovery_id' | 'webhook_id' | 'partner_id' | 'held_back' | 'position'>
  > {
  readonly since: Date;
  readonly created_at: Date;
  /** Whether none of its deliveries will be made due any more: all were, or the endpoint is paused or deleted. */
  readonly has_ended: boolean;
}

const MAX_OPEN = 100;

/** Lists open recoveries, the oldest first, without those whose deliveries are all due and some of them pending. */
export async function listOpenRecoveries(pool: pg.Pool): Promise<OpenRecovery[]> {
  const { rows } = await pool.query<OpenRecovery>({
    name: 'open_recoveries',
    text: `select r.recovery_id, r.webhook_id, r.partner_id, r.since, r.held_back, r.created_at, r.position::text,
                  d.recovery_id is not null or h.webhook_id is null as has_ended
           from read.webhook_recovery r
           left join work.recovery_due d using (recovery_id)
           left join read.webhook_health h on h.webhook_id = r.webhook_id and h.paused_at is null and h.deleted_at is null
           where r.completed_at is null and (d.recovery_id is null or r.pending = 0 or h.webhook_id is null)
           order by r.created_at limit ${MAX_OPEN}`,
  });
  return rows;
}

/** Records that all deliveries of a recovery have been made due: what fails afterwards is for the next one. */
export async function recordAllDue(pool: pg.Pool, recoveryId: string): Promise<void> {
  await pool.query(
    `with completed as (
       delete from work.recovery_due d using read.webhook_recovery r
       where r.recovery_id = d.recovery_id and r.completed_at is not null)
     insert into work.recovery_due (recovery_id) values ($1) on conflict do nothing`,
    [recoveryId],
  );
}
