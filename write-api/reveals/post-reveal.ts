import type { RevealSession } from '../../commands/reveals/reveal-session.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import {
  countedReceipt,
  type ReceiptDeps,
  refusingUnknownOutcome,
  revealSessionOperation,
} from '../../read-api/reveals/schemas.ts';

export interface PostRevealDeps extends ReceiptDeps {
  readonly revealSession: RevealSession;
}

/** RFC 9562, version 4. */
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** POST /v1/sessions/{session_id}/reveal: reveals the company behind a session, once for each Idempotency-Key. */
export const postRevealRoute = (deps: PostRevealDeps): PartnerRoute => ({
  method: 'POST',
  path: '/v1/sessions/:session_id/reveal',
  access: 'partner',
  // `{}` or nothing (contract, Requests 5).
  body: 'optional',
  bodyLimit: 1_024,
  operation: revealSessionOperation,
  handle: (request) => refusingUnknownOutcome(request, () => reveal(deps, request)),
});

async function reveal(deps: PostRevealDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const sessionId = uuidParam(request, 'session_id');
  const key = request.header('idempotency-key') ?? '';
  if (!UUID_V4.test(key)) return refusal(request, 'invalid_idempotency_key');
  if (sessionId === null) return refusal(request, 'session_not_found');
  const result = await deps.revealSession(
    { partnerId: request.caller.partner_id, sessionId, idempotencyKey: key.toLowerCase() },
    commandContext(request),
  );
  if (!result.ok) return refusal(request, result.refusal);
  return countedReceipt(deps, request, result.value);
}
