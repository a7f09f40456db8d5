import { createHash, randomBytes } from 'node:crypto';
import { v5 as uuidOf } from 'uuid';
import type { Result } from '../../domain/kernel/decider.ts';
import {
  type Ceilings,
  type KeyLimits,
  type PartnerEvent,
  partnerEvents,
} from '../../domain/partners/events.ts';
import {
  type KeyManager,
  type Partner,
  type PartnerCommand,
  type PartnerRefusal,
  partnerDecider,
  partnerStream,
  type StateChange,
  snapshotPartner,
} from '../../domain/partners/partner.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import type { CommandContext } from '../handle.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

const aggregate: SnapshottedAggregate<Partner, PartnerCommand, PartnerEvent, PartnerRefusal> = {
  schemas: partnerEvents,
  decider: partnerDecider,
  snapshot: snapshotPartner,
  sizeOf: ({ keys, revoked }) => keys.size + revoked.size,
};

/** Namespace of partner ids: the id derives from the name, which makes names unique. */
const PARTNERS = '0f0c5c0e-5a0f-5d0b-9a2e-8c1d3b7e4f60';

export interface Managed {
  readonly position: Position | null;
}

type Outcome<T> = Promise<Result<T & Managed, PartnerRefusal>>;

/** One batcher per store, so that all commands of a process share its cache. */
const batchers = new WeakMap<EventStore, Batcher<Partner, PartnerCommand, PartnerRefusal>>();
function partnersOf(store: EventStore): Batcher<Partner, PartnerCommand, PartnerRefusal> {
  const known = batchers.get(store) ?? createBatcher(store, aggregate);
  batchers.set(store, known);
  return known;
}

/** @returns `value` with the position of the command's events */
async function run<T>(
  store: EventStore,
  command: PartnerCommand,
  context: CommandContext,
  value: T,
): Outcome<T> {
  const stream = partnerStream(command.partner_id);
  const handled = await partnersOf(store).submitCommand(stream, command, context, () => null);
  return handled.ok ? { ok: true, value: { ...value, position: handled.value.position } } : handled;
}

/** Returns the id of the first partner with this name. */
export const partnerIdOf = (name: string): string => uuidOf(name, PARTNERS);

/**
 * Creates a partner account; refused if the name is taken. The id of a partner whose name a deleted partner had derives from that
 * partner's id.
 */
export async function createPartner(
  store: EventStore,
  name: string,
  context: CommandContext,
  ceilings: Partial<Ceilings> = {},
): Outcome<{ partner_id: string }> {
  for (let partner_id = partnerIdOf(name); ; partner_id = uuidOf(partner_id, PARTNERS)) {
    const command = { type: 'CreatePartner', partner_id, name, ceilings, at: context.at } as const;
    const created = await run(store, command, context, { partner_id });
    if (created.ok || created.refusal !== 'partner_deleted') return created;
  }
}

/** Suspends, resumes or deletes a partner, or records that nothing is left of a deleted one. Idempotent. */
export const changePartner = (
  store: EventStore,
  type: StateChange,
  partner_id: string,
  context: CommandContext,
): Outcome<{ partner_id: string }> =>
  run(store, { type, partner_id, at: context.at }, context, { partner_id });

/** Changes some of a partner's ceilings; existing keys keep their limits. */
export function setCeilings(
  store: EventStore,
  { partner_id, ceilings }: { partner_id: string; ceilings: Partial<Ceilings> },
  context: CommandContext,
): Outcome<{ partner_id: string }> {
  const command = { type: 'SetCeilings', partner_id, ceilings, at: context.at } as const;
  return run(store, command, context, { partner_id });
}

/** Generates a random API key. */
export const newApiKey = (): string => `dp_${randomBytes(32).toString('base64url')}`;

export interface NewKey {
  readonly partner_id: string;
  readonly name: string;
  readonly limits: KeyLimits;
  /** From `newApiKey`; creating the same key again changes nothing. */
  readonly api_key: string;
  readonly by: KeyManager;
}

/** Creates an API key. The events hold only its SHA-256, so the key cannot be shown again. */
export function createKey(
  store: EventStore,
  { partner_id, name, limits, api_key, by }: NewKey,
  context: CommandContext,
): Outcome<{ key_id: string; api_key: string }> {
  const hash = createHash('sha256').update(api_key).digest('hex');
  const key_id = `key_${hash.slice(0, 24)}`;
  const command = { type: 'CreateKey', partner_id, key_id, name, hash, limits, by, at: context.at } as const;
  return run(store, command, context, { key_id, api_key });
}

/** Changes some of a key's limits. */
export function updateKey(
  store: EventStore,
  change: { partner_id: string; key_id: string; limits: Partial<KeyLimits>; by: KeyManager },
  context: CommandContext,
): Outcome<{ key_id: string }> {
  const { key_id } = change;
  const command = { type: 'UpdateKey', ...change, at: context.at } as const;
  return run(store, command, context, { key_id });
}

/** Revokes a key for ever. Idempotent. */
export const revokeKey = (
  store: EventStore,
  { partner_id, key_id }: { partner_id: string; key_id: string },
  context: CommandContext,
): Outcome<{ key_id: string }> =>
  run(store, { type: 'RevokeKey', partner_id, key_id, at: context.at }, context, { key_id });
