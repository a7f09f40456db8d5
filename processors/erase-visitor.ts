/** Finds what is kept of a visitor, and erases it (docs/privacy.md): sessions first, then what is known of the address. */
import type pg from 'pg';
import { NIL } from 'uuid';
import { isoTime } from '../domain/kernel/time.ts';
import type { SessionSecrets } from '../domain/sessions/events.ts';
import type { DayKeys } from '../platform/crypto/keyring.ts';
import { notifyErased } from '../platform/postgres/notifications.ts';
import { openSecrets } from '../queries/sessions/sessions.ts';
import {
  addErased,
  type ErasableSession,
  type ErasedSessions,
  eraseLateReveals,
  eraseSessions,
} from './erase-sessions.ts';
import { noteExpiring } from './expiry.ts';
import { type EraseLookupDeps, eraseLookup, findLookup, forgetLateUses } from './lookup/erase-lookup.ts';
import { ConsumersBehind } from './retire-streams.ts';
import { type EraseSignalsDeps, eraseSignals, findClues } from './signals/erase-signals.ts';

/** Names a visitor: by address, by session, or by a label of a tracker's sessions. */
export type Visitor =
  /** Canonical, public or not. */
  | { readonly ip: string }
  | { readonly session_id: string }
  | { readonly tracker_id: string; readonly label: { readonly name: string; readonly value: string } };

export interface Wanted {
  readonly visitor: Visitor;
  /** Only sessions of this partner, and nothing that partners share; null: of all partners. */
  readonly partner_id: string | null;
}

export interface FoundSession extends ErasableSession {
  readonly tracker_id: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly expires_at: string;
}

/** What is kept of a visitor. */
export interface FoundVisitor {
  readonly sessions: readonly FoundSession[];
  readonly reveals: readonly {
    readonly reveal_id: string;
    readonly session_id: string;
    readonly partner_id: string;
  }[];
  /** Ids of webhook events whose bodies are kept. */
  readonly payloads: readonly string[];
  readonly clues: number;
  readonly saved_results: number;
  /** Enrichments of the address under way. */
  readonly enrichments: number;
  /** Lookups of the address that partners requested, by partner. */
  readonly lookups: ReadonlyMap<string, number>;
}

export interface VisitorDeps extends EraseLookupDeps, EraseSignalsDeps {
  /** How long a process may answer from memory, or write what it has noted, after an erasure, in milliseconds. */
  readonly lateMs: number;
  /** Waits, so that processes forget what they remember. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Whether what partners share of an address is wanted too. */
const addressOf = ({ visitor, partner_id }: Wanted): string | null =>
  'ip' in visitor && partner_id === null ? visitor.ip : null;

/** Called with the number of sessions that were looked at, or erased. */
type OnProgress = (done: number) => void;

const PROJECTED_MS = 30_000;
const READ_MODELS = ['sessions', 'reveals', 'payloads', 'signals', 'lookups'];

/** Finds what is kept of a visitor as of now. Changes nothing. @throws ConsumersBehind if a read model does not get on */
export async function findVisitor(
  deps: Pick<VisitorDeps, 'store' | 'pool' | 'dayKeys' | 'progress'>,
  wanted: Wanted,
  onProgress: OnProgress = () => undefined,
): Promise<FoundVisitor> {
  const { pool, store, progress } = deps;
  if (!(await progress.reached(READ_MODELS, await store.head(), PROJECTED_MS)))
    throw new ConsumersBehind('the read models are behind the log: see doorplate projection list');
  const sessions = await findSessions(deps, wanted, onProgress);
  const ids = sessions.map(({ session_id }) => session_id);
  // Receipts of a session that an interrupted run has erased.
  if ('session_id' in wanted.visitor && ids.length === 0) ids.push(wanted.visitor.session_id);
  const { rows: reveals } = await pool.query<FoundVisitor['reveals'][number]>(
    `select reveal_id, session_id, partner_id from read.reveal
     where session_id = any ($1::uuid[]) and ($2::uuid is null or partner_id = $2)`,
    [ids, wanted.partner_id],
  );
  const events = [
    ...ids.map((id) => `evt_session_${id}`),
    ...reveals.map(({ reveal_id }) => `evt_reveal_${reveal_id}`),
  ];
  const { rows: payloads } = await pool.query<{ event_id: string }>(
    'select event_id from read.webhook_payload where event_id = any ($1) and ($2::uuid is null or partner_id = $2)',
    [events, wanted.partner_id],
  );
  const ip = addressOf(wanted);
  const clues = ip === null ? [] : await findClues(deps, ip);
  const lookup = ip === null ? null : await findLookup(deps, ip);
  return {
    sessions,
    reveals,
    payloads: payloads.map(({ event_id }) => event_id),
    clues: clues.reduce((sum, day) => sum + day.clues, 0),
    saved_results: lookup?.saved_results ?? 0,
    enrichments: lookup?.work ?? 0,
    lookups: new Map([...(lookup?.reservations ?? [])].map(([partner, own]) => [partner, own.length])),
  };
}

interface SessionRow {
  readonly session_id: string;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly stream: string;
  readonly sealed: string;
  readonly position: string;
  readonly first_seen_at: Date;
  readonly last_seen_at: Date;
  readonly expires_at: Date;
}

const COLUMNS =
  'session_id, partner_id, tracker_id, stream, sealed, position::text as position, first_seen_at, last_seen_at, expires_at';
/** Sessions that are opened at a time. */
const PAGE = 1_000;

/** Addresses and labels are sealed, so each session that may be the visitor's is opened. */
async function findSessions(
  { pool, dayKeys }: Pick<VisitorDeps, 'pool' | 'dayKeys'>,
  { visitor, partner_id }: Wanted,
  onProgress: OnProgress,
): Promise<FoundSession[]> {
  const found: FoundSession[] = [];
  let looked = 0;
  for await (const rows of pagesOf(pool, visitor, partner_id)) {
    const secrets = 'session_id' in visitor ? null : await openAll(rows, dayKeys);
    for (const [index, row] of rows.entries()) {
      const opened = secrets?.[index] ?? null;
      if (secrets !== null && (opened === null || !isOf(visitor, opened))) continue;
      if (partner_id !== null && row.partner_id !== partner_id) continue;
      const { sealed: _, position: __, first_seen_at, last_seen_at, expires_at, ...rest } = row;
      found.push({
        ...rest,
        first_seen_at: isoTime(first_seen_at.getTime()),
        last_seen_at: isoTime(last_seen_at.getTime()),
        expires_at: isoTime(expires_at.getTime()),
      });
    }
    looked += rows.length;
    onProgress(looked);
  }
  return found;
}

const openAll = (rows: readonly SessionRow[], dayKeys: DayKeys): Promise<(SessionSecrets | null)[]> =>
  openSecrets(
    rows.map((row) => ({ ...row, first_seen_at: isoTime(row.first_seen_at.getTime()) })),
    dayKeys,
  );

const isOf = (visitor: Visitor, { ip, custom }: SessionSecrets): boolean =>
  'ip' in visitor
    ? visitor.ip === ip
    : 'label' in visitor &&
      Object.hasOwn(custom, visitor.label.name) &&
      String(custom[visitor.label.name]) === visitor.label.value;

/** Yields the sessions that may be the visitor's, each a page along an index. */
async function* pagesOf(
  pool: pg.Pool,
  visitor: Visitor,
  partnerId: string | null,
): AsyncGenerator<SessionRow[]> {
  if ('session_id' in visitor) {
    const { rows } = await pool.query<SessionRow>(
      `select ${COLUMNS} from read.session where session_id = $1`,
      [visitor.session_id],
    );
    yield rows;
    return;
  }
  const [column, of] =
    'tracker_id' in visitor ? ['tracker_id', visitor.tracker_id] : ['partner_id', partnerId];
  if (of === null) yield* allSessions(pool);
  else yield* sessionsOf(pool, column as 'tracker_id' | 'partner_id', of);
}

async function* sessionsOf(
  pool: pg.Pool,
  column: 'tracker_id' | 'partner_id',
  of: string,
): AsyncGenerator<SessionRow[]> {
  for (let after = '-1', isEnd = false; !isEnd; ) {
    const { rows }: pg.QueryResult<SessionRow> = await pool.query({
      name: `sessions_of_${column}`,
      text: `select ${COLUMNS} from read.session where ${column} = $1 and position > $2::bigint
             order by session.position limit ${PAGE}`,
      values: [of, after],
    });
    yield rows;
    after = rows.at(-1)?.position ?? after;
    isEnd = rows.length < PAGE;
  }
}

async function* allSessions(pool: pg.Pool): AsyncGenerator<SessionRow[]> {
  for (let after: string = NIL, isEnd = false; !isEnd; ) {
    const { rows }: pg.QueryResult<SessionRow> = await pool.query({
      name: 'all_sessions',
      text: `select ${COLUMNS} from read.session where session_id > $1::uuid order by session_id limit ${PAGE}`,
      values: [after],
    });
    yield rows;
    after = rows.at(-1)?.session_id ?? after;
    isEnd = rows.length < PAGE;
  }
}

/** What was erased of a visitor. */
export interface ErasedVisitor extends ErasedSessions {
  readonly clues: number;
  readonly saved_results: number;
}

const ERASED = 'erased';
/** Sessions of which receipts may still come: kept until an erasure has seen to them, since a repeat finds their rows no more. */
const AWAITED = 'receipts of erased sessions';

/**
 * Erases what was found of a visitor, and what has come since. A repeat completes an interrupted run.
 * @throws ConsumersBehind if a consumer of the log does not get on, and the port's errors
 */
export async function eraseVisitor(
  deps: VisitorDeps,
  wanted: Wanted,
  found: FoundVisitor,
  onProgress: OnProgress = () => undefined,
): Promise<ErasedVisitor> {
  const { pool, clock, pause, lateMs } = deps;
  const ip = addressOf(wanted);
  const expires_at = new Date(clock.now());
  await noteExpiring(
    pool,
    AWAITED,
    [...found.sessions, ...found.reveals].map(({ session_id: id, partner_id }) => ({
      id,
      partner_id,
      expires_at,
    })),
  );
  let erased = await eraseSessions(deps, found.sessions, ERASED, onProgress);
  const clues = ip === null ? 0 : await eraseSignals(deps, ip);
  const lookup = ip === null ? null : await eraseLookup(deps, ip);
  if (ip !== null) await notifyErased(pool);
  const { rows } = await pool.query<{ id: string }>('select id from work.expiring where kind = $1', [
    AWAITED,
  ]);
  const awaited = rows.map(({ id }) => id);
  if (awaited.length + clues + (lookup?.saved_results ?? 0) > 0) await pause(lateMs);
  erased = addErased(erased, await eraseLateReveals(deps, awaited, ERASED));
  await pool.query('delete from work.expiring where kind = $1 and id = any ($2)', [AWAITED, awaited]);
  if (ip !== null) await forgetLateUses(deps, ip);
  return { ...erased, clues, saved_results: lookup?.saved_results ?? 0 };
}
