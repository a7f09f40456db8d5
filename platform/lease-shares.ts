import { COURTESY_BEATS, type LeaseGroup } from './lease-group.ts';
import type { Peers, ProcessRole } from './peers.ts';

/** Returns whether this process may take a free lease: up to its share, or one that no other process takes. */
export const mayTake = (group: LeaseGroup, groups: number, peers: Peers, role: ProcessRole): boolean => {
  const workers = peers.otherWorkers().length;
  if (role === 'command') return workers === 0;
  return peers.ownLeases() < Math.ceil(groups / (workers + 1)) || group.freeBeats > COURTESY_BEATS;
};

/** Returns the groups to release: one to a process below its share; a command releases all of its groups to a server. */
export const sparedGroups = (
  groups: readonly LeaseGroup[],
  peers: Peers,
  role: ProcessRole,
): readonly LeaseGroup[] => {
  const held = groups.filter((group) => group.isHeld());
  const workers = peers.otherWorkers();
  if (role === 'command') return workers.length > 0 ? held : [];
  const share = groups.length / (workers.length + 1);
  const isShort = workers.some(
    ({ beats, process_id }) => Number(beats) > 1 && peers.heldBy(process_id) < Math.floor(share),
  );
  return isShort && held.length > Math.ceil(share) ? held.slice(-1) : [];
};
