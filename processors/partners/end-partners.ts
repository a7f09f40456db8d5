/**
 * Takes a deleted partner apart: its websites (whose custom domains follow), endpoints, sessions with all that hangs on them, and
 * users. Keys are refused since the deletion itself. Each step finds in the read models what is left and repeats harmlessly, so that a
 * run that was cut short anywhere is completed by the next one, of whichever process. What outlives a partner stays: the ledger,
 * counts, anchors, and the metadata of its deliveries until their usual end.
 */
import type pg from 'pg';
import { type CommandContext, ownContext } from '../../commands/handle.ts';
import { changePartner } from '../../commands/partners/manage-partner.ts';
import { readUser, releaseUser } from '../../commands/partners/manage-user.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { ErasableSession } from '../erase-sessions.ts';
import { forEachIsolated } from '../for-each.ts';
import { forgetUser } from './passwords.ts';

type DeleteOf = (partnerId: string, id: string, context: CommandContext) => Promise<unknown>;

export interface EndPartnersDeps extends ProcessorDeps {
  readonly deleteTracker: DeleteOf;
  readonly deleteEndpoint: DeleteOf;
  /** Ends sessions as if they had expired, with their receipts and the bodies of their events. */
  readonly endSessions: (sessions: readonly ErasableSession[]) => Promise<unknown>;
  /** Ends the receipts of sessions that have ended. */
  readonly endReveals: (sessionIds: readonly string[]) => Promise<unknown>;
  /** Waits until these read models have all that the store has now; false after a time limit. */
  readonly upToDate: (readModels: readonly string[]) => Promise<boolean>;
  readonly signal: AbortSignal;
}

const READ_MODELS = ['partners', 'team', 'trackers', 'webhooks', 'sessions', 'reveals', 'domains'];
/** Requests that were admitted before the deletion have ended by then, so that nothing appears any more. */
const SETTLED_MS = MINUTE;
const SESSIONS_AT_ONCE = 1_000;
const ROWS_AT_ONCE = 1_000;

interface EndingPartner {
  readonly partner_id: string;
  readonly deleted_at: Date;
}

/** Goes on with the deletion of all partners that have been deleted and not ended. */
export async function endPartners(deps: EndPartnersDeps): Promise<void> {
  const { rows } = await deps.pool.query<EndingPartner>({
    name: 'ending_partners',
    text: `select partner_id, deleted_at from read.partner
           where deleted_at is not null and ended_at is null order by deleted_at`,
  });
  await forEachIsolated(rows, (partner) => endPartner(deps, partner));
}

async function endPartner(deps: EndPartnersDeps, { partner_id, deleted_at }: EndingPartner): Promise<void> {
  const { store, clock, signal } = deps;
  const context = ownContext(clock, partner_id);
  const isSettled = clock.now() - deleted_at.getTime() >= SETTLED_MS;
  if (!(await deps.upToDate(READ_MODELS))) return;
  let left = 0;
  const each = async <Row extends pg.QueryResultRow>(text: string, end: (row: Row) => Promise<unknown>) => {
    for (const row of await rowsOf<Row>(deps, text, partner_id)) {
      await end(row);
      left += 1;
    }
  };
  await each<{ tracker_id: string }>(TRACKERS, ({ tracker_id }) =>
    deps.deleteTracker(partner_id, tracker_id, context),
  );
  await each<{ webhook_id: string }>(ENDPOINTS, ({ webhook_id }) =>
    deps.deleteEndpoint(partner_id, webhook_id, context),
  );
  await each<{ user_id: string }>(USERS, ({ user_id }) => endUser(deps, { user_id, partner_id }));
  for (let sessions: ErasableSession[]; ; left += sessions.length) {
    sessions = await rowsOf<ErasableSession>(deps, SESSIONS, partner_id);
    if (sessions.length === 0 || signal.aborted) break;
    // The sessions of a tab share its stream.
    await deps.endSessions(sessions.toSorted((one, other) => (one.stream < other.stream ? -1 : 1)));
  }
  const late = await rowsOf<{ session_id: string }>(deps, REVEALS, partner_id);
  if (late.length > 0) await deps.endReveals([...new Set(late.map(({ session_id }) => session_id))]);
  left += late.length + (await rowsOf(deps, DOMAINS, partner_id)).length;
  if (left === 0 && isSettled && !signal.aborted)
    await changePartner(store, 'EndPartner', partner_id, context);
}

/** The name is free last: what is kept of the user outside of events must not meet another user of the name. */
async function endUser(
  { store, pool, clock }: EndPartnersDeps,
  user: { readonly user_id: string; readonly partner_id: string },
): Promise<void> {
  if ((await readUser(store, user.user_id)).partner_id !== user.partner_id) return;
  await forgetUser(pool, user.user_id);
  await releaseUser(store, user, ownContext(clock, user.partner_id));
}

async function rowsOf<Row extends pg.QueryResultRow>(
  { pool }: EndPartnersDeps,
  text: string,
  partnerId: string,
): Promise<Row[]> {
  return (await pool.query<Row>(text, [partnerId])).rows;
}

const TRACKERS = `
  select tracker_id from read.tracker where partner_id = $1 and deleted_at is null
  order by created_at, tracker_id limit ${ROWS_AT_ONCE}`;
const ENDPOINTS = `
  select webhook_id from read.webhook_endpoint where partner_id = $1 and deleted_at is null
  order by created_at, webhook_id limit ${ROWS_AT_ONCE}`;
const USERS = `
  select user_id from read.team_member where partner_id = $1 order by created_at, user_id limit ${ROWS_AT_ONCE}`;
const SESSIONS = `
  select session_id, partner_id, stream from read.session where partner_id = $1 order by position limit ${SESSIONS_AT_ONCE}`;
const REVEALS = `
  select session_id from read.reveal where partner_id = $1 order by reveal_id limit ${ROWS_AT_ONCE}`;
const DOMAINS = 'select from read.domain where partner_id = $1 limit 1';
