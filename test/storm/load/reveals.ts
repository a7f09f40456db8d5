/** Partners that reveal sessions, and repeat a reveal of unknown outcome with the same Idempotency-Key. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Called } from '../../support/call.ts';
import type { Partner } from '../partners.ts';
import type { Load } from './load.ts';

const TRIES = 6;
const RETRY_MS = 500;

export const revealSession = async (load: Load): Promise<void> => {
  const partner = load.random.pick(load.partners);
  const sessionId = partner.toReveal.shift();
  if (sessionId === undefined) return;
  const key = randomUUID();
  partner.reveals.set(key, { sessionId, revealId: null });
  for (let tries = TRIES; tries > 0; tries -= 1) {
    if ((await sendReveal(load, partner, key)) !== null) {
      if (load.random.chance(0.2)) await sendReveal(load, partner, key);
      return;
    }
    await pause(RETRY_MS);
  }
};

/** POSTs the reveal with this Idempotency-Key. @returns the receipt; null: the outcome is unknown */
export const sendReveal = async (
  { client, violations }: Pick<Load, 'client' | 'violations'>,
  partner: Partner,
  idempotencyKey: string,
): Promise<Called | null> => {
  const asked = partner.reveals.get(idempotencyKey);
  if (asked === undefined) throw new Error(`no reveal has the key ${idempotencyKey}`);
  const answer = await client.ask('reveal', [200, 202], 'POST', `/v1/sessions/${asked.sessionId}/reveal`, {
    key: partner.key,
    headers: { 'idempotency-key': idempotencyKey },
  });
  if (answer?.status !== 200 && answer?.status !== 202) return null;
  const { reveal_id, session_id } = answer.body;
  if (session_id !== asked.sessionId || (asked.revealId ?? reveal_id) !== reveal_id) {
    violations.add(
      'an Idempotency-Key has one reveal',
      `key ${idempotencyKey}, session ${asked.sessionId}: first ${asked.revealId}, then ${JSON.stringify(answer.body)}`,
    );
  }
  asked.revealId = reveal_id;
  return answer;
};

/** GETs the receipt of an acknowledged reveal. */
export const readRecentReceipt = async (load: Load): Promise<void> => {
  const partner = load.random.pick(load.partners);
  const known = [...partner.reveals.values()].slice(-100).filter(({ revealId }) => revealId !== null);
  if (known.length > 0) await readReceipt(load, partner, load.random.pick(known).revealId as string);
};

/** @returns the receipt; null: there was no answer, or a 503 */
export const readReceipt = async (
  { client }: Pick<Load, 'client'>,
  { key }: Partner,
  revealId: string,
): Promise<Called | null> => {
  const answer = await client.ask('receipt', [200, 202], 'GET', `/v1/reveals/${revealId}`, { key });
  return answer?.status === 200 || answer?.status === 202 ? answer : null;
};
