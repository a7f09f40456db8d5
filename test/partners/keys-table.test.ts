import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey, createPartner, updateKey } from '../../commands/partners/manage-partner.ts';
import { DEFAULT_LIMITS } from '../../domain/partners/partner.ts';
import { partners } from '../../projections/partners/keys.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([partners]);
});
afterAll(() => stack.close());

it('has a key as expired whose event names the year 0, and the keys after it', async () => {
  const { store, caughtUp, context, rows } = stack;
  const partner = await createPartner(store, 'Acme', context());
  if (!partner.ok) throw new Error(partner.refusal);
  const { partner_id } = partner.value;
  const limits = { ...DEFAULT_LIMITS, expires_at: '0000-01-01T00:00:00.000Z' };
  const of = { partner_id, limits, by: 'user' } as const;
  const old = await createKey(store, { ...of, name: 'old', api_key: 'one' }, context());
  const other = { ...of, name: 'other', api_key: 'two', limits: DEFAULT_LIMITS };
  const next = await createKey(store, other, context());
  if (!old.ok || !next.ok) throw new Error('a key was refused');
  await caughtUp([partners]);
  expect(await rows('select key_id, expires_at from read.api_key order by name')).toEqual([
    { key_id: old.value.key_id, expires_at: new Date('0001-01-01T00:00:00.000Z') },
    { key_id: next.value.key_id, expires_at: null },
  ]);
  await updateKey(store, { ...of, key_id: next.value.key_id }, context());
  await caughtUp([partners]);
  const [updated] = await rows('select expires_at < $2 as expired from read.api_key where key_id = $1', [
    next.value.key_id,
    new Date(stack.clock.now()),
  ]);
  expect(updated).toEqual({ expired: true });
  const expiries = () => rows('select key_id, expires_at from read.api_key order by key_id');
  const before = await expiries();
  await rebuild({ store, url: stack.url, projections: [partners] });
  expect(await expiries()).toEqual(before);
});
