import type { ApiRequest, CallingKey } from './route.ts';

/** What a command carries of the request with a key that gave it: the request is its own cause. */
export const commandContext = (request: ApiRequest) => {
  const { partner_id, key_id } = request.key as CallingKey;
  return {
    correlationId: request.id,
    causationId: request.id,
    at: request.receivedAt,
    partnerId: partner_id,
    keyId: key_id,
  };
};
