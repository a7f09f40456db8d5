import type { CommandContext } from '../../commands/handle.ts';
import type { Submission, SubmitLookup } from '../../commands/lookup/submit-lookup.ts';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import { attemptsFor } from '../../domain/lookup/enrichment.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
import { commandContext, type KeyRequest, type KeyRoute, type Reply } from '../../http/contract/route.ts';
import type { CluesOf } from '../../http/contract/schemas/company-signals.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import {
  type CountLookup,
  countBeforeSend,
  type LookupReply,
  lookupFragment,
  lookupReply,
  NOT_NEEDED,
  pendingReply,
  REFRESH_PENDING,
  type Refresh,
} from '../../read-api/lookup/answer.ts';
import { postLookupOperation } from '../../read-api/lookup/schemas.ts';

export interface PostLookupDeps {
  readonly count: CountLookup;
  readonly cluesOf: CluesOf;
  /** The fast path of the read side: an answer where a fresh result is at hand. */
  readonly answerCache: {
    answer(request: KeyRequest, ip: string): Reply | null;
    keep(ip: string, saved: SavedResult, at: number): void;
  };
  readonly inFlight: { enter(ip: string): (() => void) | null };
  readonly submitLookup: (request: SubmitLookup, context: CommandContext) => Promise<Submission>;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
}

/** POST /v1/lookup: finds a saved result, or requests its enrichment. */
export const postLookupRoute = (deps: PostLookupDeps): KeyRoute => ({
  method: 'POST',
  path: '/v1/lookup',
  access: 'key',
  body: 'json',
  bodyLimit: 1_024,
  targetLimit: 512,
  operation: postLookupOperation,
  beforeSend: countBeforeSend(deps.count, deps.cluesOf),
  handle: (request) => {
    if (request.query !== '') return refusal(request, 'invalid_query');
    const body = ipOf(request.body);
    if (body === null) return refusal(request, 'invalid_body');
    const cached = deps.answerCache.answer(request, body.ip);
    if (cached) return cached;
    const ip = parsePublicAddress(body.ip);
    if (ip === null) return refusal(request, 'invalid_ip');
    const leave = deps.inFlight.enter(ip);
    if (leave === null) return refusal(request, 'lookup_capacity');
    return postLookup(deps, request, body.ip, ip).finally(leave);
  },
});

/** The `ip` of a body; '' where it is missing or no string, which is an invalid ip; null for another shape. */
function ipOf(body: unknown): { ip: string } | null {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return null;
  if (Object.keys(body).some((name) => name !== 'ip')) return null;
  const { ip } = body as { ip?: unknown };
  return { ip: typeof ip === 'string' ? ip : '' };
}

async function postLookup(
  { submitLookup, projected, answerCache }: PostLookupDeps,
  request: KeyRequest,
  text: string,
  ip: string,
): Promise<Reply | LookupReply> {
  const key = request.caller;
  const submission = await submitLookup(
    {
      ip,
      partnerId: key.partner_id,
      keyId: key.key_id,
      dailyAllowance: key.new_enrichments_per_day,
      pendingLimit: key.pending_enrichments,
    },
    commandContext(request),
  );
  if (submission.is === 'refused') {
    return refusal(request, submission.refusal, { retryAfter: submission.retryAfterSeconds });
  }
  if (submission.is === 'pending') {
    const { round, reservation, enqueued } = submission;
    // The read models need not have it yet: a GET that misses it waits for them.
    return pendingReply(request, text, {
      lookupIp: ip,
      submittedAt: reservation.submitted_at,
      attempts: attemptsFor(round, reservation.reservation_id),
      nextAttemptAt: round.next_attempt_at,
      enqueued,
    });
  }
  // A GET finds the saved result at once and waits for nothing: what it shows of the refresh must be there by then.
  const ready = projected(submission.position);
  answerCache.keep(text, submission.saved, request.receivedAt);
  const refresh = refreshOf(submission);
  const fragment = lookupFragment(submission.saved, refresh, request.receivedAt);
  return { ...lookupReply(request, text, fragment, submission.saved.match_type, refresh), ready };
}

function refreshOf({ refresh }: Extract<Submission, { is: 'saved' }>): Refresh {
  if (refresh === 'not_needed') return NOT_NEEDED;
  if (refresh === 'pending') return REFRESH_PENDING;
  const { deferred, retryAfterSeconds } = refresh;
  return { status: 'deferred', error: deferred, retryAfterSeconds };
}
