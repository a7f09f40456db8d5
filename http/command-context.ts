import type { PartnerRequest } from './route.ts';

/** What a command carries of the request that gave it, and of who sent that: the request is its own cause. */
export const commandContext = ({ id, receivedAt, caller }: PartnerRequest) => ({
  correlationId: id,
  causationId: id,
  at: receivedAt,
  partnerId: caller.partner_id,
  ...(caller.kind === 'key' ? { keyId: caller.key_id } : { userId: caller.user_id }),
});
