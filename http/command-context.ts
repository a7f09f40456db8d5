import type { ApiRequest, CallingKey } from './route.ts';

/** What a command carries of the request that gave it, and of who sent that: the request is its own cause. */
export const commandContext = (request: ApiRequest) => {
  const { partner_id, key_id } = request.key as CallingKey;
  return {
    correlationId: request.id,
    causationId: request.id,
    at: request.receivedAt,
    partnerId: partner_id,
    ...(request.userId === undefined ? { keyId: key_id } : { userId: request.userId }),
  };
};
