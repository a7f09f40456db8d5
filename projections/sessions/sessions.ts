import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { dayOfExpiredStream, sessionEvents, sessionExpiryEvents } from '../../domain/sessions/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { forgetExpiredBefore, toJson } from '../tables.ts';

interface Visited {
  readonly session_id: string;
  readonly last_seen_at: string;
  readonly last_revision: number;
  readonly last_position: string;
}

interface Created extends Visited {
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly visitor_country: string | null;
  readonly sealed: string;
  readonly first_seen_at: string;
  readonly expires_at: string;
  readonly position: string;
  readonly stream: string;
}

interface Expired {
  readonly session_id: string;
  readonly partner_id: string;
  readonly expired_at: string;
  readonly day: string;
  readonly changed_position: string;
}

const schemas = { ...sessionEvents, ...sessionExpiryEvents };

interface Changes {
  readonly created: Map<string, Created>;
  /** Sessions whose events are in another stream now. */
  readonly kept: Map<string, Created>;
  readonly visited: Map<string, Visited>;
  readonly expired: Map<string, Expired>;
}

/** Projects sessions in log order, and for a while the ids of expired ones. */
export const sessions: Projection = {
  name: 'sessions',
  tables: ['session', 'expired_session'],
  types: Object.keys(schemas),
  async apply(events, db) {
    const changes: Changes = { created: new Map(), kept: new Map(), visited: new Map(), expired: new Map() };
    for (const stored of events) fold(changes, stored);
    await write(changes, db);
  },
};

function fold({ created, kept, visited, expired }: Changes, stored: RecordedEvent): void {
  const event = readEvent(schemas, stored);
  if (event === null) return;
  const { stream, revision: last_revision } = stored;
  const position = stored.position.toString();
  switch (event.type) {
    case 'sessions.SessionsExpired.v1': {
      const { partner_id, sessions: gone } = event.data;
      const day = dayOfExpiredStream(stream);
      for (const [session_id, expired_at] of gone) {
        // The first event counts, as in the table.
        if (expired.has(session_id)) continue;
        expired.set(session_id, { session_id, partner_id, expired_at, day, changed_position: position });
      }
      return;
    }
    case 'sessions.SessionCreated.v1': {
      const { visit_id: _, visitor: __, ...row } = event.data;
      const last = { last_seen_at: row.first_seen_at, last_revision, last_position: position };
      created.set(row.session_id, { ...row, ...last, position, stream });
      return;
    }
    case 'sessions.SessionKept.v1': {
      const { visit_id: _, visitor: __, visits: ___, seen_at: last_seen_at, ...row } = event.data;
      kept.set(row.session_id, { ...row, last_seen_at, last_revision, last_position: position, stream });
      visited.delete(row.session_id);
      return;
    }
    case 'sessions.SessionVisited.v1': {
      const { session_id, seen_at } = event.data;
      const before = visited.get(session_id)?.last_seen_at ?? '';
      // Never moves back, because clocks of processes differ. ISO 8601 text sorts like its instants.
      const last_seen_at = seen_at > before ? seen_at : before;
      visited.set(session_id, { session_id, last_seen_at, last_revision, last_position: position });
      return;
    }
    default:
      unreachable(event);
  }
}

async function write({ created, kept, visited, expired }: Changes, db: pg.ClientBase): Promise<void> {
  const run = async (name: string, text: string, rows: ReadonlyMap<string, object>): Promise<void> => {
    if (rows.size > 0) await db.query({ name, text, values: [toJson(rows.values())] });
  };
  await run('create_sessions', CREATE, created);
  await run('keep_sessions', KEEP, kept);
  await run('visit_sessions', VISIT, visited);
  await run('expire_sessions', EXPIRE, expired);
}

const COLUMNS = `session_id, partner_id, tracker_id, visitor_country, sealed, first_seen_at, last_seen_at, expires_at,
                 position, stream, last_revision, last_position`;

const CREATE = `
  insert into session (${COLUMNS})
  select ${COLUMNS} from json_populate_recordset(null::session, $1)
  on conflict (session_id) do nothing`;

/** Visits of the earlier stream are all in the event, so its revision and position replace theirs. */
const KEEP = `
  insert into session as present (${COLUMNS})
  select ${COLUMNS} from json_populate_recordset(null::session, $1)
  on conflict (session_id) do update
  set last_seen_at = greatest(present.last_seen_at, excluded.last_seen_at),
      (stream, last_revision, last_position) = row (excluded.stream, excluded.last_revision, excluded.last_position)`;

const VISIT = `
  update session s
  set last_seen_at = greatest(s.last_seen_at, n.last_seen_at),
      last_revision = greatest(s.last_revision, n.last_revision),
      last_position = greatest(s.last_position, n.last_position)
  from json_populate_recordset(null::session, $1) n where s.session_id = n.session_id`;

const EXPIRE = `
  with gone as (
    select session_id, partner_id, expired_at, day, changed_position
    from json_populate_recordset(null::expired_session, $1)),
  deleted as (
    delete from session where session_id = any (array(select session_id from gone)))
  insert into expired_session (session_id, partner_id, expired_at, day, changed_position)
  select session_id, partner_id, expired_at, day, changed_position from gone
  on conflict (session_id) do nothing`;

/** Deletes ids of sessions that were swept before `day` (`YYYY-MM-DD`), whose streams the event store has deleted. */
export const forgetExpiredSessionsBefore = (db: pg.Pool, day: string): Promise<void> =>
  forgetExpiredBefore(db, 'expired_session', day);
