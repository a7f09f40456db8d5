import { v7 as uuid } from 'uuid';
import {
  type DomainEvent,
  type DomainSlotEvent,
  domainEvents,
  domainSlotEvents,
} from '../../domain/domains/events.ts';
import {
  claimRefusal,
  type Domain,
  type DomainCommand,
  type DomainRefusal,
  domainDecider,
  domainStream,
  isDomainName,
  type Name,
  needsProof,
  nextCheck,
  snapshotName,
} from '../../domain/domains/hostname.ts';
import {
  domainSlotsStream,
  heldSlot,
  heldSlots,
  mayStand,
  type SlotCommand,
  type SlotRefusal,
  type Slots,
  slotOf,
  slotsDecider,
  snapshotSlots,
} from '../../domain/domains/slots.ts';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { type Batcher, createBatcher } from '../batcher.ts';
import type { CommandContext } from '../handle.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

const nameAggregate: SnapshottedAggregate<Name, DomainCommand, DomainEvent, DomainRefusal> = {
  schemas: domainEvents,
  decider: domainDecider,
  snapshot: snapshotName,
};

export type NamesBatcher = Batcher<Name, DomainCommand, DomainRefusal>;

export const createNamesBatcher = (store: EventStore): NamesBatcher => createBatcher(store, nameAggregate);

const slotsAggregate: SnapshottedAggregate<Slots, SlotCommand, DomainSlotEvent, SlotRefusal> = {
  schemas: domainSlotEvents,
  decider: slotsDecider,
  snapshot: snapshotSlots,
};

type SlotsBatcher = Batcher<Slots, SlotCommand, SlotRefusal>;

export const createSlotsBatcher = (store: EventStore): SlotsBatcher => createBatcher(store, slotsAggregate);

type TrackerRefusal = 'tracker_not_found' | 'tracker_deleted';
export type ClaimRefusal = TrackerRefusal | SlotRefusal | DomainRefusal | 'invalid_domain';
type ReleaseRefusal = TrackerRefusal | 'domain_not_found';

interface ClaimedDomain {
  readonly domain: Domain;
  /** Whether activation also requires the TXT record that proves ownership. */
  readonly needsProof: boolean;
  /** null: nothing was appended, or its position is unknown. */
  readonly position: Position | null;
}

interface ReleasedDomain {
  readonly hostname: string;
  /** ISO 8601. */
  readonly deleted_at: string;
  readonly position: Position | null;
}

/** Identifies a partner's tracker. */
export interface TrackerName {
  readonly partner_id: string;
  readonly tracker_id: string;
}

interface DomainCommandDeps {
  readonly store: EventStore;
  /** The service's own host names, which no partner can claim. */
  readonly ownHosts: readonly string[];
  /** Returns why a tracker cannot have domains; null if it can. */
  readonly trackerRefusal: (of: TrackerName) => Promise<TrackerRefusal | null>;
  /** Returns whether the partner has reached its limit of names; concurrent claims may exceed it slightly. */
  readonly isFull: (partnerId: string) => Promise<boolean>;
  /** Returns whether the TXT record of a name holds the partner's token. */
  readonly isProven: (hostname: string, partnerId: string) => Promise<boolean>;
}

/**
 * Creates the commands on custom domains, all idempotent. A claim takes two steps, because no append spans two streams: a slot of its tracker, which limits
 * the number, and then the name, which decides the owner. After a crash between them,
 * `processors/domains/keep-domains.ts` completes the claim (docs/adr, "A domain's place and its name").
 */
export function createDomainCommands(deps: DomainCommandDeps) {
  const slots = createSlotsBatcher(deps.store);
  const names = createNamesBatcher(deps.store);

  /** Starts a domain's activation, or restarts a failed one. */
  const claim = async (
    of: TrackerName,
    hostname: string,
    context: CommandContext,
  ): Promise<Result<ClaimedDomain, ClaimRefusal>> => {
    const claimable = await claimability(deps, names, of, hostname);
    if (!claimable.ok) return claimable;
    const { proven } = claimable.value;
    const { tracker_id, partner_id } = of;
    const ids = { hostname, tracker_id, partner_id, proven, at: context.at };
    const slotTaken = await slots.submitCommand(
      domainSlotsStream(tracker_id),
      { type: 'Take', ...ids, domain_id: uuid() },
      context,
      (state) => heldSlot(state, hostname),
    );
    if (!slotTaken.ok) return slotTaken;
    const slot = slotTaken.value.value;
    if (!slot) throw new TypeError('the tracker accepted a slot that its state does not hold');
    const { domain_id } = slot;
    const command = { type: 'Claim', ...ids, domain_id } as const;
    const claimed = await names.submitCommand(domainStream(hostname), command, context, (after) => ({
      domain: after.claims.get(domain_id),
      needsProof: needsProof(after, partner_id),
    }));
    if (!claimed.ok) {
      await freeSlot(slots, of, domain_id, context);
      return claimed;
    }
    const { value, position } = claimed.value;
    if (!value.domain) throw new TypeError('the name accepted a claim that its state does not hold');
    const { domain } = value;
    return accept({ domain, needsProof: value.needsProof && domain.status !== 'active', position });
  };

  const release = async (
    of: TrackerName,
    domain_id: string,
    context: CommandContext,
  ): Promise<Result<ReleasedDomain, ReleaseRefusal>> => {
    const refused = await deps.trackerRefusal(of);
    if (refused !== null) return refuse(refused);
    const slot = await slots.readState(domainSlotsStream(of.tracker_id), (state) => slotOf(state, domain_id));
    if (!slot) return refuse('domain_not_found');
    const { hostname } = slot;
    // The slot goes first: without it no name is valid, so the processor completes an interrupted release.
    const freed = await freeSlot(slots, of, domain_id, context);
    const deleted_at = freed.ok ? freed.value.value : null;
    const released = await releaseName(names, { domain_id, hostname }, context);
    if (!released.ok || deleted_at === null) throw new TypeError('the release of a domain was refused');
    return accept({ hostname, deleted_at, position: released.value.position });
  };

  return { claim, release };
}
export type DomainCommands = ReturnType<typeof createDomainCommands>;

/** Returns whether the tracker may claim the name, before a slot is taken that would have to be freed again. */
async function claimability(
  { ownHosts, trackerRefusal, isFull, isProven }: DomainCommandDeps,
  names: NamesBatcher,
  of: TrackerName,
  hostname: string,
): Promise<Result<{ readonly proven: boolean }, ClaimRefusal>> {
  if (!isDomainName(hostname, ownHosts)) return refuse('invalid_domain');
  const refused = await trackerRefusal(of);
  if (refused !== null) return refuse(refused);
  const name = await names.readState(domainStream(hostname), (state) => state);
  const taken = claimRefusal(name, of);
  if (taken === 'domain_taken') return refuse(taken);
  const isMine = name.claims.some((one) => one.tracker_id === of.tracker_id);
  if (!isMine && (await isFull(of.partner_id))) return refuse('domain_limit');
  const proven = taken !== null && (await isProven(hostname, of.partner_id));
  return taken !== null && !proven ? refuse(taken) : accept({ proven });
}

const freeSlot = (
  slots: SlotsBatcher,
  { tracker_id }: Pick<TrackerName, 'tracker_id'>,
  domain_id: string,
  context: CommandContext,
) =>
  slots.submitCommand(
    domainSlotsStream(tracker_id),
    { type: 'Free', tracker_id, domain_id, at: context.at },
    context,
    ({ freed }) => freed.get(domain_id)?.freed_at ?? null,
  );

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
export async function recordCheck(
  names: NamesBatcher,
  check: DomainCheck,
  context: CommandContext,
): Promise<number | null> {
  const stream = domainStream(check.hostname);
  const checked = await names.submitCommand(
    stream,
    { type: 'RecordCheck', ...check },
    context,
    ({ claims }) => claims.get(check.domain_id),
  );
  if (!checked.ok) throw new TypeError('the result of a domain check was refused');
  const { value: claim } = checked.value;
  return claim ? nextCheck(claim, check.at) : null;
}

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
export async function completeClaim(
  deps: SettlingDeps,
  {
    proven = false,
    ...domain
  }: DomainOfTracker & { readonly partner_id: string; readonly proven?: boolean | undefined },
  context: CommandContext,
): Promise<void> {
  if (!mayStand(await slotsOf(deps, domain.tracker_id), domain.domain_id)) return;
  const stream = domainStream(domain.hostname);
  if (await deps.names.readState(stream, ({ claims }) => claims.has(domain.domain_id))) return;
  const command = { type: 'Claim', ...domain, proven, at: context.at } as const;
  const claimed = await deps.names.submitCommand(stream, command, context, () => null);
  if (!claimed.ok) await freeSlot(deps.slots, domain, domain.domain_id, context);
}

/** Releases a name that holds no slot of its tracker, or whose tracker is deleted. */
export async function releaseUnlessKept(
  deps: SettlingDeps,
  domain: DomainOfTracker,
  context: CommandContext,
): Promise<void> {
  if (mayStand(await slotsOf(deps, domain.tracker_id), domain.domain_id)) return;
  await releaseName(deps.names, domain, context);
}

/** Closes the slots of a deleted tracker. */
export async function closeSlots(
  deps: SettlingDeps,
  tracker_id: string,
  context: CommandContext,
): Promise<void> {
  const command = { type: 'Close', tracker_id, at: context.at } as const;
  await deps.slots.submitCommand(domainSlotsStream(tracker_id), command, context, () => null);
}

/** Releases all names of a tracker. */
export async function releaseAll(
  deps: SettlingDeps,
  tracker_id: string,
  context: CommandContext,
): Promise<void> {
  for (const slot of heldSlots(await slotsOf(deps, tracker_id))) await releaseName(deps.names, slot, context);
}

function releaseName(
  names: NamesBatcher,
  { domain_id, hostname }: Pick<DomainOfTracker, 'domain_id' | 'hostname'>,
  context: CommandContext,
) {
  const command = { type: 'Release', domain_id, hostname, at: context.at } as const;
  return names.submitCommand(domainStream(hostname), command, context, () => null);
}
