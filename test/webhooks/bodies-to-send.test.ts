import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SealedBody } from '../../domain/webhooks/events.ts';
import type { DayKey, DayKeys } from '../../platform/crypto/keyring.ts';
import { createBodiesToSend } from '../../projections/webhooks/payloads/readers.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const AT = Date.parse('2026-03-01T12:00:00.000Z');
let stack: TestStack;
let keysAreDestroyed = false;
/** Seals by doing nothing. */
const dayKeys = {
  of: async () => (keysAreDestroyed ? null : ({ open: (sealed: Buffer) => sealed } as DayKey)),
} as unknown as DayKeys;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const aBody = (text: string): SealedBody => ({
  event_id: `evt_session_${crypto.randomUUID()}`,
  day: '2026-03-01',
  sealed: Buffer.from(text),
  expires_at: new Date(AT + 60_000),
});
const store = ({ event_id, day, sealed, expires_at }: SealedBody) =>
  stack.pool.query(
    `insert into read.webhook_payload
       (event_id, partner_id, type, day, sealed, bytes, created_at, expires_at, last_revision, last_position)
     values ($1, gen_random_uuid(), 'session.created', $2, $3, 1, $4, $4, 0, 0)`,
    [event_id, day, sealed, expires_at],
  );
const textOf = async (body: Promise<Buffer | 'unreadable' | null>) => (await body)?.toString() ?? null;

it('come from memory after they were stored or read, and from the table where asked to', async () => {
  const bodies = createBodiesToSend(stack.pool, dayKeys, () => AT);
  const [queued, other] = [aBody('queued here'), aBody('queued elsewhere')];
  bodies.remember(queued);
  await store(other);
  expect(await textOf(bodies.of(other.event_id, 'remembered'))).toBe('queued elsewhere');
  await stack.pool.query('delete from read.webhook_payload where event_id = $1', [other.event_id]);
  for (const { event_id } of [queued, other]) {
    expect(await textOf(bodies.of(event_id, 'remembered'))).not.toBeNull();
    expect(await textOf(bodies.of(event_id, 'stored'))).toBeNull();
  }
});

it('do not come from memory once they have expired or their key is destroyed', async () => {
  let now = AT;
  const bodies = createBodiesToSend(stack.pool, dayKeys, () => now);
  const body = aBody('kept');
  bodies.remember(body);
  expect(await textOf(bodies.of(body.event_id, 'remembered'))).toBe('kept');
  keysAreDestroyed = true;
  expect(await textOf(bodies.of(body.event_id, 'remembered'))).toBeNull();
  keysAreDestroyed = false;
  now = body.expires_at.getTime();
  expect(await textOf(bodies.of(body.event_id, 'remembered'))).toBeNull();
});
