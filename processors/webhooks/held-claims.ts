import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Position } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DeliveryClaim, DeliveryClaims } from './claims.ts';

export interface HeldClaimsOptions {
  readonly claims: DeliveryClaims;
  readonly clock: Clock;
  readonly log: Logger;
  /** Waits until the read model of deliveries reaches the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
}

const RELEASE_EVERY_MS = 500;
const RETRY_MS = 500;
const RENEW_EVERY_MS = 5_000;

/** Renews this worker's claims until their outcomes are in the read model, which makes the next attempt due. */
export class HeldClaims {
  readonly #options: HeldClaimsOptions;
  readonly #renewed = new Set<DeliveryClaim>();
  #toRelease: DeliveryClaim[] = [];
  #stopped = false;
  #working: Promise<void> = Promise.resolve();
  #renewedAt = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(options: HeldClaimsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#working = this.#working
        .then(() => this.#releaseBatch())
        .then(() => this.#renew())
        .catch((error: unknown) =>
          options.log.warn(
            { error: String(error) },
            'delivery claims were not renewed or released; retry scheduled',
          ),
        );
    }, RELEASE_EVERY_MS);
  }

  add(claims: readonly DeliveryClaim[]): void {
    for (const claim of claims) this.#renewed.add(claim);
  }

  /** Releases claims after their outcomes, the last at `position`, are projected. */
  async releaseAfter(claims: readonly DeliveryClaim[], position: Position | null): Promise<void> {
    for (let known = false; !known; ) {
      if (this.#stopped) return;
      known = await this.#options.projected(position).catch(() => setTimeout(RETRY_MS, false));
    }
    for (const claim of claims) this.release(claim);
  }

  /** Releases a claim. If it has no outcome, the attempt is repeated a little later. */
  release(claim: DeliveryClaim): void {
    this.#renewed.delete(claim);
    this.#toRelease.push(claim);
  }

  /** Stops renewals; the remaining claims end with their leases. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#working;
    await this.#releaseBatch().catch(() => undefined);
  }

  async #releaseBatch(): Promise<void> {
    const batch = this.#toRelease;
    this.#toRelease = [];
    if (batch.length === 0) return;
    await this.#options.claims.release(batch).catch((error: unknown) => {
      this.#toRelease.push(...batch);
      throw error;
    });
  }

  async #renew(): Promise<void> {
    if (this.#renewed.size === 0 || performance.now() - this.#renewedAt < RENEW_EVERY_MS) return;
    this.#renewedAt = performance.now();
    await this.#options.claims.renew([...this.#renewed], this.#options.clock.now());
  }
}
