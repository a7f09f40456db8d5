import { domainStream, nextCheck } from '../../domain/domains/domain.ts';
import { domainSlotsStream, heldSlots, mayStand, type Slots } from '../../domain/domains/slots.ts';
import type { CommandContext } from '../handle.ts';
import type { NamesBatcher, SlotsBatcher } from './manage-domains.ts';

/** The result of a DNS check. */
interface DomainCheck {
  readonly domain_id: string;
  readonly hostname: string;
  /** Start of the check, milliseconds. */
  readonly at: number;
  /** Why the name does not point to the service; null if it does. */
  readonly error: string | null;
  /** Whether the name's TXT record holds the token of the claim's partner. */
  readonly proven: boolean;
}

/** Records a check that changes something. @returns time of the next check, milliseconds; null: none */
export const recordCheck = async (
  names: NamesBatcher,
  check: DomainCheck,
  context: CommandContext,
): Promise<number | null> => {
  const stream = domainStream(check.hostname);
  const checked = await names.submit(stream, { type: 'RecordCheck', ...check }, context, ({ claims }) =>
    claims.get(check.domain_id),
  );
  if (!checked.ok) throw new TypeError('the result of a domain check was refused');
  const { value: claim } = checked.value;
  return claim ? nextCheck(claim, check.at) : null;
};

interface DomainOfTracker {
  readonly domain_id: string;
  readonly tracker_id: string;
  readonly hostname: string;
}

interface SettlingDeps {
  readonly names: NamesBatcher;
  readonly slots: SlotsBatcher;
}

const slotsOf = ({ slots }: SettlingDeps, trackerId: string): Promise<Slots> =>
  slots.readState(domainSlotsStream(trackerId), (state) => state);

/** Claims the name that a slot was taken for, or frees the slot if the name is refused. Idempotent. */
export const completeClaim = async (
  deps: SettlingDeps,
  {
    proven = false,
    ...domain
  }: DomainOfTracker & { readonly partner_id: string; readonly proven?: boolean | undefined },
  context: CommandContext,
): Promise<void> => {
  if (!mayStand(await slotsOf(deps, domain.tracker_id), domain.domain_id)) return;
  const stream = domainStream(domain.hostname);
  if (await deps.names.readState(stream, ({ claims }) => claims.has(domain.domain_id))) return;
  const command = { type: 'Claim', ...domain, proven, at: context.at } as const;
  const claimed = await deps.names.submit(stream, command, context, () => null);
  if (!claimed.ok) await freeSlot(deps, domain, context);
};

/** Releases a name that holds no slot of its tracker, or whose tracker is deleted. */
export const releaseUnlessKept = async (
  deps: SettlingDeps,
  domain: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  if (mayStand(await slotsOf(deps, domain.tracker_id), domain.domain_id)) return;
  await release(deps, domain, context);
};

/** Closes the slots of a deleted tracker. */
export const closeSlots = async (
  deps: SettlingDeps,
  tracker_id: string,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Close', tracker_id, at: context.at } as const;
  await deps.slots.submit(domainSlotsStream(tracker_id), command, context, () => null);
};

/** Releases all names of a tracker. */
export const releaseAll = async (
  deps: SettlingDeps,
  tracker_id: string,
  context: CommandContext,
): Promise<void> => {
  for (const { domain_id, hostname } of heldSlots(await slotsOf(deps, tracker_id))) {
    await release(deps, { domain_id, hostname, tracker_id }, context);
  }
};

const release = async (
  { names }: SettlingDeps,
  { domain_id, hostname }: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Release', domain_id, hostname, at: context.at } as const;
  await names.submit(domainStream(hostname), command, context, () => null);
};

const freeSlot = async (
  deps: SettlingDeps,
  { domain_id, tracker_id }: DomainOfTracker,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Free', domain_id, tracker_id, at: context.at } as const;
  await deps.slots.submit(domainSlotsStream(tracker_id), command, context, () => null);
};
