import type { Taken, Wanted } from './claims.ts';

interface Lane {
  /** When something may be due, milliseconds; infinity: nothing is known to be. */
  lookAt: number;
  /** Attempts of this worker under way. */
  running: number;
  readonly partnerId: string;
}

/** Endpoints looked at in one statement. */
const AT_ONCE = 64;

/** A partner may hold as much as so many endpoints: all of its own, usually. */
const ENDPOINTS_OF_PARTNER = 5;

/**
 * The endpoints at which this worker has something to do, served in turn. While half of the worker's places are free an
 * endpoint may hold what it may have anyway (`concurrency`); then less and less, down to one, so that hundreds that
 * begin to hang at once leave room for others until their breakers hold them. `places`: attempts of the worker at once.
 * `roomOfPartner`: attempts of a partner at once, where something else limits them.
 */
export const createLanes = (
  concurrency: number,
  slots: number,
  roomOfPartner: (partnerId: string) => number = () => Number.POSITIVE_INFINITY,
) => {
  const lanes = new Map<string, Lane>();
  const ofPartner = new Map<string, number>();
  let running = 0;

  const roomOf = (lane: Lane, free: number, reserved = 0): number => {
    const share = Math.max(1, Math.floor(concurrency * Math.min(1, (2 * free) / slots) ** 2));
    const ofThisPartner = Math.min(share * ENDPOINTS_OF_PARTNER, roomOfPartner(lane.partnerId));
    const left = ofThisPartner - (ofPartner.get(lane.partnerId) ?? 0) - reserved;
    return Math.min(share - lane.running, left, free);
  };

  const moveRunning = (lane: Lane, more: number): void => {
    running += more;
    lane.running += more;
    const left = (ofPartner.get(lane.partnerId) ?? 0) + more;
    if (left === 0) ofPartner.delete(lane.partnerId);
    else ofPartner.set(lane.partnerId, left);
  };

  return {
    /** Something may be due at this endpoint of this partner's from then on (milliseconds). */
    look: (webhookId: string, partnerId: string, at: number): void => {
      const lane = lanes.get(webhookId);
      if (lane) lane.lookAt = Math.min(lane.lookAt, at);
      else lanes.set(webhookId, { lookAt: at, running: 0, partnerId });
    },

    /** The endpoints to look at now, those first that have waited longest for their turn. */
    plan: (now: number): Wanted[] => {
      const wanted: Wanted[] = [];
      const served: [string, Lane][] = [];
      const reserved = new Map<string, number>();
      let free = slots - running;
      for (const [webhookId, lane] of lanes) {
        if (wanted.length === AT_ONCE || free < 1) break;
        if (lane.lookAt > now) {
          if (lane.running === 0 && lane.lookAt === Number.POSITIVE_INFINITY) lanes.delete(webhookId);
          continue;
        }
        const ofThisPartner = reserved.get(lane.partnerId) ?? 0;
        const count = roomOf(lane, free, ofThisPartner);
        if (count < 1) continue;
        lane.lookAt = Number.POSITIVE_INFINITY;
        free -= count;
        reserved.set(lane.partnerId, ofThisPartner + count);
        wanted.push({ webhookId, count });
        served.push([webhookId, lane]);
      }
      // To the end of the queue.
      for (const [webhookId, lane] of served) {
        lanes.delete(webhookId);
        lanes.set(webhookId, lane);
      }
      return wanted;
    },

    /** What became of a plan. */
    taken: ({ webhookId, claims, againAt }: Taken): void => {
      const lane = lanes.get(webhookId);
      if (!lane) return;
      moveRunning(lane, claims.length);
      lane.lookAt = Math.min(lane.lookAt, againAt);
    },

    /** A plan came to nothing. */
    notTaken: ({ webhookId }: Wanted, againAt: number): void => {
      const lane = lanes.get(webhookId);
      if (lane) lane.lookAt = Math.min(lane.lookAt, againAt);
    },

    /** An attempt has ended. */
    ended: (webhookId: string): void => {
      const lane = lanes.get(webhookId);
      if (lane) moveRunning(lane, -1);
    },

    running: (): number => running,

    /** Milliseconds from `now` until one of them is to be looked at and has room. */
    nextIn: (now: number): number => {
      const free = slots - running;
      let next = Number.POSITIVE_INFINITY;
      for (const lane of lanes.values()) {
        if (lane.lookAt < next && roomOf(lane, free) > 0) next = lane.lookAt;
      }
      return Math.max(0, next - now);
    },
  };
};
