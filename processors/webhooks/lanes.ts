import { Counts } from '../../platform/counts.ts';
import type { Taken, Wanted } from './claims.ts';

interface Lane {
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  pollAt: number;
  running: number;
  readonly partnerId: string;
}

export const MAX_ENDPOINTS_PER_POLL = 64;

/** A partner's attempts may be as many as those of this number of endpoints, usually all of its own. */
const MAX_ENDPOINT_SHARES_OF_PARTNER = 5;

/**
 * Schedules this worker's endpoints round robin. While the worker makes fewer than half of its possible attempts, an endpoint
 * may have `concurrency` of them; then fewer, down to one, so that hundreds of endpoints that begin to hang together leave
 * room for others until their circuit breakers open.
 */
export class Lanes {
  readonly #concurrency: number;
  readonly #capacity: number;
  readonly #roomOfPartner: (partnerId: string) => number;
  readonly #lanes = new Map<string, Lane>();
  readonly #runningOfPartner = new Counts();
  #running = 0;

  /**
   * @param concurrency attempts of one endpoint at a time
   * @param capacity attempts of the worker at a time
   * @param roomOfPartner a further limit of one partner
   */
  constructor(
    concurrency: number,
    capacity: number,
    roomOfPartner: (partnerId: string) => number = () => Number.POSITIVE_INFINITY,
  ) {
    this.#concurrency = concurrency;
    this.#capacity = capacity;
    this.#roomOfPartner = roomOfPartner;
  }

  /** Polls the endpoint from `at` (milliseconds) on. */
  schedule(webhookId: string, partnerId: string, at: number): void {
    const lane = this.#lanes.get(webhookId);
    if (lane) lane.pollAt = Math.min(lane.pollAt, at);
    else this.#lanes.set(webhookId, { pollAt: at, running: 0, partnerId });
  }

  /** Returns the endpoints to poll now, the one that has waited longest first. `most`: attempts of all of them together. */
  plan(now: number, most = Number.POSITIVE_INFINITY): Wanted[] {
    const wanted: Wanted[] = [];
    const served: [string, Lane][] = [];
    const reserved = new Map<string, number>();
    let free = this.#capacity - this.#running;
    let left = most;
    const evenShare = Math.ceil(most / this.#due(now));
    for (const [webhookId, lane] of this.#lanes) {
      if (wanted.length === MAX_ENDPOINTS_PER_POLL || Math.min(free, left) < 1) break;
      if (lane.pollAt > now) {
        if (lane.running === 0 && lane.pollAt === Number.POSITIVE_INFINITY) this.#lanes.delete(webhookId);
        continue;
      }
      const ofThisPartner = reserved.get(lane.partnerId) ?? 0;
      const count = Math.min(this.#roomOf(lane, free, ofThisPartner), evenShare, left);
      if (count < 1) continue;
      lane.pollAt = Number.POSITIVE_INFINITY;
      free -= count;
      left -= count;
      reserved.set(lane.partnerId, ofThisPartner + count);
      wanted.push({ webhookId, count });
      served.push([webhookId, lane]);
    }
    // Served endpoints move to the end of the queue.
    for (const [webhookId, lane] of served) {
      this.#lanes.delete(webhookId);
      this.#lanes.set(webhookId, lane);
    }
    return wanted;
  }

  onClaimed({ webhookId, claims, againAt }: Taken): void {
    const lane = this.#lanes.get(webhookId);
    if (!lane) return;
    this.#moveRunning(lane, claims.length);
    lane.pollAt = Math.min(lane.pollAt, againAt);
  }

  onNotClaimed({ webhookId }: Wanted, againAt: number): void {
    const lane = this.#lanes.get(webhookId);
    if (lane) lane.pollAt = Math.min(lane.pollAt, againAt);
  }

  ended(webhookId: string): void {
    const lane = this.#lanes.get(webhookId);
    if (lane) this.#moveRunning(lane, -1);
  }

  /** Returns the milliseconds until the next poll of an endpoint that may have another attempt. */
  nextIn(now: number): number {
    const free = this.#capacity - this.#running;
    let next = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes.values()) {
      if (lane.pollAt < next && this.#roomOf(lane, free) > 0) next = lane.pollAt;
    }
    return Math.max(0, next - now);
  }

  #due(now: number): number {
    const free = this.#capacity - this.#running;
    let due = 0;
    for (const lane of this.#lanes.values()) if (lane.pollAt <= now && this.#roomOf(lane, free) > 0) due += 1;
    return due;
  }

  #roomOf(lane: Lane, free: number, reserved = 0): number {
    const share = Math.max(1, Math.floor(this.#concurrency * Math.min(1, (2 * free) / this.#capacity) ** 2));
    const limit = Math.min(share * MAX_ENDPOINT_SHARES_OF_PARTNER, this.#roomOfPartner(lane.partnerId));
    const left = limit - this.#runningOfPartner.of(lane.partnerId) - reserved;
    return Math.min(share - lane.running, left, free);
  }

  #moveRunning(lane: Lane, more: number): void {
    this.#running += more;
    lane.running += more;
    this.#runningOfPartner.add(lane.partnerId, more);
  }
}
