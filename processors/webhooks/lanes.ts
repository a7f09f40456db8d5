import type { Taken, Wanted } from './claims.ts';

interface Lane {
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  pollAt: number;
  running: number;
  readonly partnerId: string;
}

const MAX_ENDPOINTS_PER_POLL = 64;

/** A partner may hold the slots of this many endpoints, usually all of its own. */
const MAX_ENDPOINT_SHARES_OF_PARTNER = 5;

/**
 * Schedules this worker's endpoints round robin. While half of the slots are free, an endpoint may use `concurrency`
 * of them; then fewer, down to one, so that hundreds of endpoints that begin to hang together leave slots for others until
 * their circuit breakers open. `slots`: concurrent attempts of the worker. `roomOfPartner`: a further limit per partner.
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
    const ofThisPartner = Math.min(share * MAX_ENDPOINT_SHARES_OF_PARTNER, roomOfPartner(lane.partnerId));
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
    /** Polls the endpoint from `at` (milliseconds) on. */
    schedule: (webhookId: string, partnerId: string, at: number): void => {
      const lane = lanes.get(webhookId);
      if (lane) lane.pollAt = Math.min(lane.pollAt, at);
      else lanes.set(webhookId, { pollAt: at, running: 0, partnerId });
    },

    /** Returns the endpoints to poll now, the one that has waited longest first. */
    plan: (now: number): Wanted[] => {
      const wanted: Wanted[] = [];
      const served: [string, Lane][] = [];
      const reserved = new Map<string, number>();
      let free = slots - running;
      for (const [webhookId, lane] of lanes) {
        if (wanted.length === MAX_ENDPOINTS_PER_POLL || free < 1) break;
        if (lane.pollAt > now) {
          if (lane.running === 0 && lane.pollAt === Number.POSITIVE_INFINITY) lanes.delete(webhookId);
          continue;
        }
        const ofThisPartner = reserved.get(lane.partnerId) ?? 0;
        const count = roomOf(lane, free, ofThisPartner);
        if (count < 1) continue;
        lane.pollAt = Number.POSITIVE_INFINITY;
        free -= count;
        reserved.set(lane.partnerId, ofThisPartner + count);
        wanted.push({ webhookId, count });
        served.push([webhookId, lane]);
      }
      // Served endpoints move to the end of the queue.
      for (const [webhookId, lane] of served) {
        lanes.delete(webhookId);
        lanes.set(webhookId, lane);
      }
      return wanted;
    },

    onClaimed: ({ webhookId, claims, againAt }: Taken): void => {
      const lane = lanes.get(webhookId);
      if (!lane) return;
      moveRunning(lane, claims.length);
      lane.pollAt = Math.min(lane.pollAt, againAt);
    },

    onNotClaimed: ({ webhookId }: Wanted, againAt: number): void => {
      const lane = lanes.get(webhookId);
      if (lane) lane.pollAt = Math.min(lane.pollAt, againAt);
    },

    ended: (webhookId: string): void => {
      const lane = lanes.get(webhookId);
      if (lane) moveRunning(lane, -1);
    },

    running: (): number => running,

    /** Returns the milliseconds until the next poll of an endpoint with a free slot. */
    nextIn: (now: number): number => {
      const free = slots - running;
      let next = Number.POSITIVE_INFINITY;
      for (const lane of lanes.values()) {
        if (lane.pollAt < next && roomOf(lane, free) > 0) next = lane.pollAt;
      }
      return Math.max(0, next - now);
    },
  };
};
