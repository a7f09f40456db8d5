import type { DatabasePool } from 'slonik';
import { searchKey } from '../../domain/kernel/text.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { asUuid, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import type { Reads } from '../../queries/reads.ts';
import {
  findSession,
  positionAt,
  readFeed,
  type SessionFilter,
  scanSessions,
  toSessionBodies,
} from '../../queries/sessions/sessions.ts';
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

export interface SearchDeps {
  readonly db: DatabasePool;
  readonly dayKeys: DayKeys;
  readonly cursors: Cursors;
}

export interface SessionSearch extends SessionFilter {
  readonly trackerId: string | null;
  /** Part of a label's name or value. Labels are sealed, so each session that is looked at is opened. */
  readonly label?: string;
  /** The `older` of an earlier page of the same list; null: the first page. */
  readonly before: string | null;
}

export interface FoundSessions {
  readonly sessions: readonly SessionBody[];
  /** Where to go on; null: there is nothing older. */
  readonly older: string | null;
  /** The search stopped although there may be more matches: it has looked at as many sessions as one request may. */
  readonly isCutShort: boolean;
}

const PAGE = 50;
/** Sessions that one statement looks at under a filter, and one request. */
const SCAN = 2_000;
const MOST_SCANNED = 10_000;
const SESSIONS_KEPT_MS = 30 * DAY;

/** Finds a partner's sessions, newest first, a page at a time; null if the cursor is of another list. */
export async function searchSessions(
  { db, dayKeys, cursors }: SearchDeps,
  partnerId: string,
  { trackerId, before, label, ...filter }: SessionSearch,
  now: number,
): Promise<FoundSessions | null> {
  const list = `recent sessions ${partnerId}`;
  const nothing = { sessions: [], older: null, isCutShort: false };
  let cursor = before === null ? null : await cursors.open(before, list);
  if (cursor === null && before !== null) return null;
  const isPast = filter.to !== undefined && Date.parse(filter.to) < now;
  if (cursor === null && isPast) {
    cursor = await positionAt(db, filter.to ?? '', SESSIONS_KEPT_MS);
    if (cursor === null) return nothing;
  }
  const isSearch =
    isPast || [label, filter.country, filter.revealed, filter.company].some((one) => one !== undefined);
  const scan = isSearch ? SCAN : PAGE + 1;
  const found: { readonly body: SessionBody; readonly position: bigint }[] = [];
  let isEnd = false;
  for (let looked = 0; !isEnd && found.length <= PAGE && looked < MOST_SCANNED; looked += scan) {
    const page = await scanSessions(db, { partnerId, trackerId, before: cursor, now, filter, scan });
    const positions = new Map(page.rows.map(({ session_id, position }) => [session_id, BigInt(position)]));
    const bodies = await toSessionBodies(page.rows, dayKeys);
    found.push(
      ...bodies
        .filter((body) => label === undefined || hasLabel(body, label))
        .map((body) => ({ body, position: positions.get(body.session_id) ?? 0n })),
    );
    cursor = page.scannedTo;
    isEnd = page.isEnd;
  }
  const shown = found.slice(0, PAGE);
  const hasMore = found.length > PAGE;
  const next = hasMore ? (shown.at(-1)?.position ?? null) : isEnd ? null : cursor;
  return {
    sessions: shown.map(({ body }) => body),
    older: next === null ? null : await cursors.seal(next, list),
    isCutShort: !hasMore && next !== null,
  };
}

function hasLabel({ custom = {} }: SessionBody, text: string): boolean {
  const wanted = spelledAlike(text);
  return Object.entries(custom).some(([name, value]) => spelledAlike(`${name}: ${value}`).includes(wanted));
}

/** People write `plan: pro`, `plan:pro` and `plan=pro`. */
const spelledAlike = (text: string): string =>
  searchKey(text)
    .split(/[:=]/)
    .map((part) => part.trim())
    .join(':');
