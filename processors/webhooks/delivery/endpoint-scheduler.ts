import { Counts } from '../../../platform/limits/coalesce.ts';
import type { Taken, Wanted } from './claims.ts';

/** Ceilings of concurrent attempts in this process. */
export interface ConcurrencyLimits {
  readonly ofEndpoint: number;
  readonly ofPartner: number;
  readonly ofProcess: number;
}

interface ScheduledEndpoint {
  /** Time of the next poll, milliseconds; infinity: wait for a notification. */
  pollAt: number;
  running: number;
  readonly partnerId: string;
}

export const MAX_ENDPOINTS_PER_POLL = 64;

/** Says which endpoints this worker polls next: those that are due, longest due first, within the ceilings of concurrency. */
export class EndpointScheduler {
  readonly #limits: ConcurrencyLimits;
  readonly #endpoints = new Map<string, ScheduledEndpoint>();
  readonly #runningOfPartner = new Counts();
  #running = 0;

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits;
  }

  /** Polls the endpoint from `at` (milliseconds) on. */
  schedule(webhookId: string, partnerId: string, at: number): void {
    const known = this.#endpoints.get(webhookId);
    if (known) known.pollAt = Math.min(known.pollAt, at);
    else this.#endpoints.set(webhookId, { pollAt: at, running: 0, partnerId });
  }

  /** Returns the endpoints to poll now, the one that has been due longest first. They are not polled again until `onClaimed`. */
  plan(now: number): Wanted[] {
    const due: [string, ScheduledEndpoint][] = [];
    for (const [webhookId, endpoint] of this.#endpoints) {
      if (endpoint.pollAt <= now) due.push([webhookId, endpoint]);
      else if (endpoint.running === 0 && endpoint.pollAt === Number.POSITIVE_INFINITY)
        this.#endpoints.delete(webhookId);
    }
    due.sort(([, one], [, other]) => one.pollAt - other.pollAt);

    const wanted: Wanted[] = [];
    const reserved = new Counts();
    let reservedInAll = 0;
    for (const [webhookId, endpoint] of due) {
      if (wanted.length === MAX_ENDPOINTS_PER_POLL) break;
      const count = this.#freeOf(endpoint, reserved.of(endpoint.partnerId), reservedInAll);
      if (count < 1) continue;
      endpoint.pollAt = Number.POSITIVE_INFINITY;
      reserved.add(endpoint.partnerId, count);
      reservedInAll += count;
      wanted.push({ webhookId, count });
    }
    return wanted;
  }

  onClaimed({ webhookId, claims, againAt }: Taken): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (!endpoint) return;
    this.#addRunning(endpoint, claims.length);
    endpoint.pollAt = Math.min(endpoint.pollAt, againAt);
  }

  onNotClaimed({ webhookId }: Wanted, againAt: number): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (endpoint) endpoint.pollAt = Math.min(endpoint.pollAt, againAt);
  }

  onEnded(webhookId: string): void {
    const endpoint = this.#endpoints.get(webhookId);
    if (endpoint) this.#addRunning(endpoint, -1);
  }

  /** Returns the milliseconds until the next poll of an endpoint that may have another attempt. */
  nextIn(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const endpoint of this.#endpoints.values()) {
      if (endpoint.pollAt < next && this.#freeOf(endpoint) > 0) next = endpoint.pollAt;
    }
    return Math.max(0, next - now);
  }

  #freeOf({ running, partnerId }: ScheduledEndpoint, reservedOfPartner = 0, reservedInAll = 0): number {
    return Math.min(
      this.#limits.ofEndpoint - running,
      this.#limits.ofPartner - this.#runningOfPartner.of(partnerId) - reservedOfPartner,
      this.#limits.ofProcess - this.#running - reservedInAll,
    );
  }

  #addRunning(endpoint: ScheduledEndpoint, more: number): void {
    this.#running += more;
    endpoint.running += more;
    this.#runningOfPartner.add(endpoint.partnerId, more);
  }
}
