import { isStale, type SavedResult } from '../../domain/lookup/result.ts';
import type { Outcome } from '../../domain/usage/events.ts';
import type { ApiRequest, KeyRequest, KeyRoute, Reply } from '../../http/contract/route.ts';
import type { ShownCompany } from '../../http/contract/schemas/company.ts';
import type { CluesOf, CompanySignals } from '../../http/contract/schemas/company-signals.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { POLL_SECONDS, type RefreshError, type RefreshStatus } from './schemas.ts';

/** An answer to a lookup, with what it counts as in usage. */
export interface LookupReply extends Reply {
  readonly outcome: Outcome;
  readonly served: boolean;
  /** What must have happened before the answer is sent, besides its being counted. */
  readonly ready?: Promise<unknown>;
}

export interface Refresh {
  readonly status: RefreshStatus;
  readonly error: RefreshError;
  /** Sent as Retry-After when pending or deferred. */
  readonly retryAfterSeconds?: number;
}

export const NOT_NEEDED: Refresh = { status: 'not_needed', error: null };
export const REFRESH_PENDING: Refresh = { status: 'pending', error: null, retryAfterSeconds: POLL_SECONDS };

// A key may see company signals that another may not.
const CACHEABLE = { 'cache-control': 'private, max-age=60', vary: 'authorization' } as const;

/** The fields of a Lookup body that are the same for every caller and request. */
export const lookupFragment = (saved: SavedResult, refresh: Refresh, at: number): string =>
  JSON.stringify({
    matched_ip: saved.ip,
    status: 'complete',
    match_type: saved.match_type,
    company_found: saved.match_type === 'company',
    enriched_at: saved.enriched_at,
    stale: isStale(saved, at),
    fresh_until: saved.fresh_until,
    refresh_status: refresh.status,
    refresh_error: refresh.error,
    network: saved.network,
    company: saved.company,
  }).slice(1, -1);

/** 200 from a fragment. `ip` as the caller spelled it. */
export const lookupReply = (
  request: ApiRequest,
  ip: string,
  fragment: string,
  matchType: SavedResult['match_type'],
  refresh: Refresh,
): LookupReply => ({
  status: 200,
  body: `{"ip":${JSON.stringify(ip)},${fragment},"request_id":"${request.id}"}`,
  headers:
    refresh.status === 'not_needed'
      ? CACHEABLE
      : refresh.retryAfterSeconds === undefined
        ? {}
        : { 'retry-after': String(refresh.retryAfterSeconds) },
  outcome: matchType,
  served: true,
});

interface PendingLookup {
  readonly lookupIp: string;
  readonly submittedAt: string;
  /** Attempts that failed so far. */
  readonly attempts: number;
  readonly nextAttemptAt: string | null;
  /** Whether this very request reserved the work. */
  readonly enqueued: boolean;
}

/** 202, for work under way (contract, Lookup 1). */
export function pendingReply(request: ApiRequest, ip: string, pending: PendingLookup): LookupReply {
  const { lookupIp, submittedAt, attempts, nextAttemptAt, enqueued } = pending;
  const status_url = `/v1/lookup?ip=${encodeURIComponent(lookupIp)}`;
  const status = attempts === 0 ? 'pending' : 'retrying';
  const fields = JSON.stringify({
    ip,
    lookup_ip: lookupIp,
    status,
    company_found: null,
    company: null,
    submitted_at: submittedAt,
    attempts,
    next_retry_at: attempts === 0 ? null : nextAttemptAt,
    last_error: attempts === 0 ? null : 'lookup_failed',
    status_url,
    poll_after_seconds: POLL_SECONDS,
  }).slice(0, -1);
  return {
    status: 202,
    body: `${fields},"request_id":"${request.id}"}`,
    headers: { location: status_url, 'retry-after': String(POLL_SECONDS) },
    outcome: enqueued ? 'enqueued' : status,
    served: false,
  };
}

/** What an answer to a lookup counts as (contract, Lookup 9). */
function outcomeOf(answer: Reply | LookupReply): { outcome: Outcome; served: boolean } {
  if ('outcome' in answer) return answer;
  if (answer.status === 429) return { outcome: 'rate_limited', served: false };
  const invalid = answer.status === 400 || answer.status === 413 || answer.status === 415;
  return { outcome: invalid ? 'invalid_request' : 'error', served: false };
}

/** Statuses of answers that carry clues (contract, Company signals). */
const CARRYING: ReadonlySet<number> = new Set([200, 202, 404, 503]);

/**
 * Adds clues to the answer of an enabled key. They are read while it is being counted.
 * @param counted the answer once it is counted, or the refusal that replaces it
 */
async function withClues(
  request: KeyRequest,
  answer: Reply,
  counted: Promise<Reply>,
  cluesOf: CluesOf,
): Promise<Reply> {
  const ask = (): Promise<CompanySignals> =>
    cluesOf(request.caller.partner_id, addressOf(request), companyIn(answer));
  const asked = CARRYING.has(answer.status) ? ask() : null;
  const final = await counted;
  if (!CARRYING.has(final.status) || typeof final.body !== 'string') return final;
  const signals = await (asked ?? ask());
  return { ...final, body: `${final.body.slice(0, -1)},"company_signals":${JSON.stringify(signals)}}` };
}

/** What the caller asked about, in the body of a POST or the query of a GET. */
function addressOf({ body, query }: ApiRequest): string | null {
  if (body === undefined) return new URLSearchParams(query).get('ip');
  const { ip } = (body ?? {}) as { ip?: unknown };
  return typeof ip === 'string' ? ip : null;
}

/** The company of a lookup that found one. Its answer is text by now, which is read again rather than kept twice. */
function companyIn({ status, body }: Reply): ShownCompany | null {
  if (status !== 200 || typeof body !== 'string') return null;
  const { company_found, company } = JSON.parse(body) as {
    company_found: boolean;
    company: ShownCompany | null;
  };
  return company_found ? company : null;
}

export type CountLookup = (lookup: {
  readonly keyId: string;
  readonly outcome: Outcome;
  readonly served: boolean;
  readonly durationMs: number;
}) => Promise<void>;

/**
 * Counts every answer to an authenticated lookup durably before it is sent (contract, Lookup 9), and waits for
 * `ready`; gives those of enabled keys their clues.
 */
export function countBeforeSend(count: CountLookup, cluesOf: CluesOf): NonNullable<KeyRoute['beforeSend']> {
  const counted = counting(count);
  return (request, answer) =>
    request.caller.company_signals
      ? withClues(request, answer, counted(request, answer), cluesOf)
      : counted(request, answer);
}

const counting =
  (count: CountLookup) =>
  async (request: KeyRequest, answer: Reply): Promise<Reply> => {
    const durationMs = performance.now() - request.startedAt;
    try {
      const { outcome, served } = outcomeOf(answer);
      const counted = count({ keyId: request.caller.key_id, outcome, served, durationMs });
      if ('ready' in answer) await Promise.all([counted, answer.ready]);
      else await counted;
      return answer;
    } catch {
      return refusal(request, 'usage_unavailable');
    }
  };
