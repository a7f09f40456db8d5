import type { DatabasePool } from 'slonik';
import { asUuid, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import type { Reads } from '../../queries/reads.ts';
import { findSession, readFeed, readRecent, toSessionBodies } from '../../queries/sessions/sessions.ts';
import type { TrackerDirectory } from '../../queries/trackers/directory.ts';
import type { Cursors } from '../cursor.ts';
import { namedParameters } from '../query.ts';
import { listSessionsOperation, previewSessionOperation, type SessionBody } from './schemas.ts';

interface SessionRouteDeps extends Reads {
  readonly dayKeys: DayKeys;
  readonly cursors: Cursors;
  readonly trackers: Pick<TrackerDirectory, 'find'>;
  /** Counts a successful call that concerned one tracker, durably. */
  readonly countCall: (request: PartnerRequest, trackerId: string) => Promise<void>;
}

const MAX_SESSIONS = 100;
const DEFAULT_SESSIONS = 50;

/** GET /v1/sessions and GET /v1/sessions/{session_id}. */
export function sessionRoutes(deps: SessionRouteDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, { bodyLimit: 0 });
  return [
    route('GET', '/v1/sessions', 'none', listSessionsOperation, feed),
    route('GET', '/v1/sessions/:session_id', 'none', previewSessionOperation, preview),
  ];
}

/** Oldest first by creation, so that polling with the last cursor misses nothing and repeats nothing. */
async function feed(deps: SessionRouteDeps, request: PartnerRequest): Promise<Reply> {
  const { db, dayKeys, cursors, trackers } = deps;
  const asked = parseQuery(request.query);
  if (asked === null) return refusal(request, 'invalid_query');
  const partnerId = request.caller.partner_id;
  const trackerId = asked.tracker_id === undefined ? null : asUuid(asked.tracker_id);
  if (asked.tracker_id !== undefined && trackerId === null) return refusal(request, 'invalid_tracker');
  const list = `sessions ${partnerId} ${trackerId ?? '*'}`;
  const after = asked.cursor === undefined ? 0n : await cursors.resume(asked.cursor, list);
  if (after === null) return refusal(request, 'invalid_cursor');
  if (trackerId !== null && (await trackers.find(trackerId))?.partner_id !== partnerId) {
    return refusal(request, 'tracker_not_found');
  }

  await deps.waitForHead();
  const { limit } = asked;
  const found = await readFeed(db, {
    partnerId,
    trackerId,
    after,
    limit: limit + 1,
    now: request.receivedAt,
  });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const body = {
    sessions: await toSessionBodies(page, dayKeys),
    next_cursor: await cursors.seal(last === undefined ? after : BigInt(last.position), list),
    has_more: found.length > limit,
    request_id: request.id,
  };
  if (trackerId !== null) await deps.countCall(request, trackerId);
  return { status: 200, body: JSON.stringify(body) };
}

/** null: a parameter that there is not, or one of them twice, or a limit out of range. */
function parseQuery(query: string) {
  const given = namedParameters(query, ['tracker_id', 'cursor', 'limit']);
  const limit = given?.limit ?? String(DEFAULT_SESSIONS);
  const isLimit = /^[1-9]\d{0,2}$/.test(limit) && Number(limit) <= MAX_SESSIONS;
  return given && isLimit ? { ...given, limit: Number(limit) } : null;
}

async function preview(deps: SessionRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const sessionId = uuidParam(request, 'session_id');
  if (sessionId === null) return refusal(request, 'session_not_found');
  const partnerId = request.caller.partner_id;
  const row = await findSession(deps, partnerId, sessionId, request.receivedAt);
  if (typeof row === 'string') return refusal(request, row);
  const [body] = await toSessionBodies([row], deps.dayKeys);
  if (body === undefined) return refusal(request, 'session_expired');
  await deps.countCall(request, row.tracker_id);
  return { status: 200, body: JSON.stringify({ ...body, request_id: request.id }) };
}

interface RecentDeps {
  readonly db: DatabasePool;
  readonly dayKeys: DayKeys;
  readonly cursors: Cursors;
}

interface RecentQuery {
  readonly partnerId: string;
  readonly trackerId: string | null;
  /** The `older` of an earlier page of the same list; null: the first page. */
  readonly before: string | null;
  readonly now: number;
}

const PAGE = 50;

/** Returns a page of a partner's sessions, newest first; null if the cursor is of another list. */
export async function recentSessions(
  { db, dayKeys, cursors }: RecentDeps,
  { partnerId, trackerId, before, now }: RecentQuery,
): Promise<{ readonly sessions: readonly SessionBody[]; readonly older: string | null } | null> {
  const list = `recent sessions ${partnerId}`;
  const cursor = before === null ? null : await cursors.open(before, list);
  if (cursor === null && before !== null) return null;
  const found = await readRecent(db, { partnerId, trackerId, before: cursor, limit: PAGE + 1, now });
  const page = found.slice(0, PAGE);
  const last = page.at(-1);
  return {
    sessions: await toSessionBodies(page, dayKeys),
    older: found.length > PAGE && last ? await cursors.seal(BigInt(last.position), list) : null,
  };
}
