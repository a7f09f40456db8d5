import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createKey, createPartner, newApiKey, revokeKey } from '../../commands/partners/manage-partner.ts';
import { loadFromSnapshot } from '../../commands/snapshots.ts';
import { createTrackerCommands } from '../../commands/trackers/manage-trackers.ts';
import { accept } from '../../domain/kernel/decider.ts';
import type { EventStore } from '../../event-store/port.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** The store of a new process, with a count of the events that it reads. */
const countingStore = () => {
  let read = 0;
  const store: EventStore = Object.create(stack.store);
  store.readStream = async function* (...args) {
    for await (const event of stack.store.readStream(...args)) {
      read += 1;
      yield event;
    }
  };
  return { store, read: () => read };
};
const times = <T>(count: number, make: (nth: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, nth) => make(nth)));

/** Writes about 1,100 events; returns a command on them for another process, which changes nothing. */
const kinds: Record<string, () => Promise<(store: EventStore) => Promise<unknown>>> = {
  'a partner’s keys': async () => {
    const made = await createPartner(stack.store, `acme ${randomUUID()}`, stack.context());
    if (!made.ok) throw new Error(made.refusal);
    const { partner_id } = made.value;
    const limits = {
      requests_per_second: 50,
      new_enrichments_per_day: null,
      pending_enrichments: 10_000,
      company_signals: false,
      expires_at: null,
    };
    const keys = await times(1_100, (nth) =>
      createKey(
        stack.store,
        { partner_id, name: `key ${nth}`, limits, api_key: newApiKey(), by: 'operator' },
        stack.context(),
      ),
    );
    const key_id = keys[0]?.ok ? keys[0].value.key_id : '';
    await revokeKey(stack.store, { partner_id, key_id }, stack.context());
    return (store) => revokeKey(store, { partner_id, key_id }, stack.context());
  },
  'a partner’s trackers, of more than fits into an append,': async () => {
    const commands = createTrackerCommands(stack.store, 2_000);
    const partner = randomUUID();
    const origins = Array.from({ length: 20 }, (_, nth) => `https://${'x'.repeat(60)}${nth}.example`);
    const fields = { name: 'a site', origins, customer_reference: null };
    const made = await times(1_100, () => commands.create(partner, fields, stack.context()));
    const id = made[0]?.ok ? made[0].value.tracker_id : '';
    await commands.delete(partner, id, stack.context());
    return (store) => createTrackerCommands(store, 2_000).delete(partner, id, stack.context());
  },
};

test.each(Object.keys(kinds))('another process reads %s from the last snapshot on', async (name) => {
  const command = await kinds[name]?.();
  const { store, read } = countingStore();
  expect(await command?.(store)).toMatchObject({ ok: true });
  expect(read()).toBeGreaterThan(0);
  expect(read()).toBeLessThan(300);
});

test('a snapshot in parts is used when all parts exist, and an earlier one when a part is missing', async () => {
  interface Counted {
    readonly type: 'test.Counted.v1' | 'test.Part.v1';
    readonly data: { readonly part?: number };
  }
  const aggregate = {
    schemas: { 'test.Counted.v1': z.object({}), 'test.Part.v1': z.object({ part: z.number() }) },
    decider: {
      initial: 0,
      decide: () => accept([]),
      evolve: (count: number, { type }: Counted) => count + (type === 'test.Counted.v1' ? 1 : 100),
    },
    snapshot: () => [],
    partOf: ({ data: { part } }: Counted) => (part === undefined ? null : { part, parts: 3 }),
  };
  const folded = async (stream: string): Promise<number> => {
    const stored = [...stream].map((kind, revision) => ({
      type: kind === 'c' ? 'test.Counted.v1' : 'test.Part.v1',
      data: kind === 'c' ? {} : { part: Number(kind) },
      revision,
    }));
    const store = {
      readStream: async function* () {
        yield* stored.toReversed();
      },
    } as unknown as EventStore;
    return (await loadFromSnapshot<number, never, Counted, never>(store, aggregate, 'test-stream')).state;
  };
  expect(await folded('cc123c')).toBe(301);
  expect(await folded('cc12c')).toBe(203);
  expect(await folded('cc1cc')).toBe(104);
  expect(await folded('c12c123cc')).toBe(302);
  expect(await folded('c123c1')).toBe(401);
});
