import type { CommandContext } from '../../commands/handle.ts';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import type { Reads } from '../../queries/reads.ts';
import { findReveal } from '../../queries/reveals/reveals.ts';
import { countedReceipt, getRevealOperation, type ReceiptDeps, refusingUnknownOutcome } from './schemas.ts';

export interface GetRevealDeps extends ReceiptDeps, Reads {
  /** Completes a pending reveal where its result is there (architecture, rule 14); null: it is gone. */
  readonly complete: (revealId: string, context: CommandContext) => Promise<Reveal | null>;
}

/** GET /v1/reveals/{reveal_id}: the receipt, completed first if it can be. */
export const getRevealRoute = (deps: GetRevealDeps): PartnerRoute => ({
  method: 'GET',
  path: '/v1/reveals/:reveal_id',
  access: 'partner',
  body: 'none',
  bodyLimit: 0,
  operation: getRevealOperation,
  handle: (request) => refusingUnknownOutcome(request, () => read(deps, request)),
});

async function read(deps: GetRevealDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const revealId = uuidParam(request, 'reveal_id');
  if (revealId === null) return refusal(request, 'reveal_not_found');
  const { caller } = request;
  const { partner_id } = caller;
  const found = await findReveal(deps, partner_id, revealId, request.receivedAt);
  if (typeof found === 'string') return refusal(request, found);
  // Reveals of a suspended partner wait.
  const mayComplete = !found.completed && !(caller.kind === 'user' && caller.is_suspended);
  const reveal = mayComplete ? await deps.complete(revealId, commandContext(request)) : found;
  if (reveal === null) return refusal(request, 'reveal_expired');
  return countedReceipt(deps, request, reveal);
}
