import { createHmac } from 'node:crypto';

const USER_AGENT = 'Doorplate-Webhooks/1';

/**
 * Makes the headers of one attempt (contract, Webhooks 3; Standard Webhooks 1.0).
 * @param secrets key bytes, the newest first; two during a rotation
 * @param at time of the attempt, milliseconds
 * @param body the exact bytes to send
 */
export const signatureHeaders = (
  secrets: readonly Buffer[],
  eventId: string,
  at: number,
  body: Buffer,
): Record<string, string> => {
  const timestamp = String(Math.floor(at / 1_000));
  const sign = (secret: Buffer): string =>
    createHmac('sha256', secret).update(`${eventId}.${timestamp}.`).update(body).digest('base64');
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret)}`).join(' '),
  };
};
