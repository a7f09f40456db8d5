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

const FORGET_EVERY_MS = 500;
const RETRY_MS = 500;
const RENEW_EVERY_MS = 5_000;

/** Renews this worker's claims until their outcomes are in the read model, which makes the next attempt due. */
export const createHeldClaims = ({ claims, clock, log, projected }: HeldClaimsOptions) => {
  const held = new Set<DeliveryClaim>();
  let over: DeliveryClaim[] = [];
  let stopped = false;
  let working: Promise<void> = Promise.resolve();
  let renewedAt = performance.now();

  const forget = async (): Promise<void> => {
    const batch = over;
    over = [];
    if (batch.length > 0) await claims.forget(batch);
  };

  const renew = async (): Promise<void> => {
    if (held.size === 0 || performance.now() - renewedAt < RENEW_EVERY_MS) return;
    renewedAt = performance.now();
    await claims.renew([...held], clock.now());
  };

  const timer = setInterval(() => {
    working = working
      .then(forget)
      .then(renew)
      .catch((error: unknown) =>
        log.warn({ error: String(error) }, 'delivery claims were not renewed or released; retry scheduled'),
      );
  }, FORGET_EVERY_MS);

  const written = async (batch: readonly DeliveryClaim[], position: Position | null): Promise<void> => {
    for (let known = false; !known; ) {
      if (stopped) return;
      known = await projected(position).catch(() => setTimeout(RETRY_MS, false));
    }
    for (const claim of batch) held.delete(claim);
    over.push(...batch);
  };

  return {
    add: (batch: readonly DeliveryClaim[]): void => {
      for (const claim of batch) held.add(claim);
    },
    /** Releases the claims after their outcomes, the last at `position`, are projected. */
    written: (batch: readonly DeliveryClaim[], position: Position | null): void =>
      void written(batch, position),
    /** Releases a claim without an outcome, so that the attempt is repeated a little later. */
    drop: (claim: DeliveryClaim): void => {
      held.delete(claim);
      over.push(claim);
    },
    /** Stops renewals; claims that are still held end with their leases. */
    stop: async (): Promise<void> => {
      stopped = true;
      clearInterval(timer);
      await working;
      await forget().catch(() => undefined);
    },
  };
};
