import { createHash } from 'node:crypto';
import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { searchKey } from '../../domain/kernel/text.ts';
import {
  type RevealEvent,
  type RevealFacts,
  type RevealResult,
  revealEvents,
  revealExpiryEvents,
  revealFacts,
} from '../../domain/reveals/events.ts';
import { dayOfExpiredStream } from '../../domain/sessions/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { columnsOf, forgetExpiredBefore } from '../tables.ts';

/** A row as `json_populate_recordset` reads it; `result` is a JSON column. */
interface WrittenRow extends RevealFacts {
  readonly completed_at: string | null;
  readonly billable: boolean | null;
  readonly result: RevealResult | null;
  readonly company_search: string | null;
  readonly company_key: string | null;
  readonly last_revision: number;
  readonly last_position: string;
}

interface ExpiredRow {
  readonly reveal_id: string;
  readonly partner_id: string;
  readonly expired_at: string;
  readonly day: string;
  readonly reason: string | null;
  readonly changed_position: string;
}

/**
 * Projects reveals: the read model of GET /v1/reveals/{reveal_id}. Its SQL names its own tables without a schema, because a
 * rebuild writes them in another one.
 */
export const reveals: Projection = {
  name: 'reveals',
  tables: ['reveal', 'expired_reveal'],
  types: Object.keys({ ...revealEvents, ...revealExpiryEvents }),
  async apply(events, db) {
    const rows = new Map<string, WrittenRow>();
    const expired: ExpiredRow[] = [];
    for (const stored of events) {
      const event = readEvent(revealEvents, stored);
      if (event) rows.set(event.data.reveal_id, rowAfter(rows.get(event.data.reveal_id), event, stored));
      const gone = readEvent(revealExpiryEvents, stored);
      for (const [reveal_id, expired_at] of gone?.data.reveals ?? []) {
        const day = dayOfExpiredStream(stored.stream);
        const { partner_id = '', reason = null } = gone?.data ?? {};
        const changed_position = String(stored.position);
        expired.push({ reveal_id, partner_id, expired_at, day, reason, changed_position });
      }
    }
    if (rows.size > 0) await write('upsert_reveals', UPSERT, [...rows.values()], db);
    if (expired.length > 0) await write('expire_reveals', EXPIRE, expired, db);
  },
};

const write = (name: string, text: string, rows: readonly object[], db: pg.ClientBase) =>
  db.query({ name, text, values: [JSON.stringify(rows)] });

function rowAfter(
  before: WrittenRow | undefined,
  { type, data }: RevealEvent,
  { revision, position }: RecordedEvent,
): WrittenRow {
  const origin = { last_revision: revision, last_position: String(position) };
  switch (type) {
    case 'reveals.RevealRequested.v1':
      return { ...before, ...PENDING, ...data, ...origin };
    case 'reveals.RevealCompleted.v1':
      return { ...before, ...data, ...companyOf(data.result), ...origin };
    default:
      return unreachable(type);
  }
}

const PENDING = { completed_at: null, billable: null, result: null, company_search: null, company_key: null };

/** The company by which reveals are grouped and searched for: only one that was found. */
function companyOf({ match_type, company }: RevealResult) {
  const name = match_type === 'company' ? (company?.name ?? null) : null;
  if (name === null) return { company_search: null, company_key: null };
  const company_search = searchKey(name);
  return { company_search, company_key: createHash('md5').update(company_search).digest('hex') };
}

const COMPLETION =
  'completed_at, billable, result, company_search, company_key, last_revision, last_position';
const COLUMNS = [...Object.keys(revealFacts.shape), COMPLETION].join(', ');

/** Each event holds the whole reveal, so the completion alone is enough to make the row. */
const UPSERT = `
  insert into reveal as present (${COLUMNS})
  select ${COLUMNS} from json_populate_recordset(null::reveal, $1)
  on conflict (reveal_id) do update set (${COMPLETION}) = (${columnsOf('excluded', COMPLETION)})
  where present.last_revision < excluded.last_revision`;

const EXPIRE = `
  with gone as (
         select reveal_id, partner_id, expired_at, day, reason, changed_position
         from json_populate_recordset(null::expired_reveal, $1)),
       deleted as (delete from reveal where reveal_id = any (array(select reveal_id from gone)))
  insert into expired_reveal (reveal_id, partner_id, expired_at, day, reason, changed_position)
  select distinct on (reveal_id) reveal_id, partner_id, expired_at, day, reason, changed_position from gone
  order by reveal_id, changed_position
  on conflict (reveal_id) do nothing`;

/** Deletes ids of reveals that were swept before `day` (`YYYY-MM-DD`), whose streams the event store has deleted. */
export const forgetExpiredRevealsBefore = (db: pg.Pool, day: string): Promise<void> =>
  forgetExpiredBefore(db, 'expired_reveal', day);
