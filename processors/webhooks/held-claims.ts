import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Position } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DeliveryClaim, DeliveryClaims } from './claims.ts';

export interface HeldClaimsOptions {
  readonly claims: DeliveryClaims;
  readonly clock: Clock;
  readonly log: Logger;
  /** Waits until the read model of deliveries has the position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
}

const FORGET_EVERY_MS = 500;
const AGAIN_MS = 500;
/** A sixth of the lease. */
const RENEW_EVERY_MS = 5_000;

/** Keeps this worker's claims alive until their outcomes are in the read model, which alone makes the next attempt due. */
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
      .catch((error: unknown) => log.warn({ error: String(error) }, 'claims of deliveries were not kept'));
  }, FORGET_EVERY_MS);

  const written = async (batch: readonly DeliveryClaim[], position: Position | null): Promise<void> => {
    for (let known = false; !known; ) {
      if (stopped) return;
      known = await projected(position).catch(() => setTimeout(AGAIN_MS, false));
    }
    for (const claim of batch) held.delete(claim);
    over.push(...batch);
  };

  return {
    add: (batch: readonly DeliveryClaim[]): void => {
      for (const claim of batch) held.add(claim);
    },
    /** The outcomes are in the log, the last one at this place. */
    written: (batch: readonly DeliveryClaim[], position: Position | null): void =>
      void written(batch, position),
    /** Nothing came of it: it may be claimed again, a little later. */
    drop: (claim: DeliveryClaim): void => {
      held.delete(claim);
      over.push(claim);
    },
    /** What is held still ends with its lease: until then nobody repeats it. */
    stop: async (): Promise<void> => {
      stopped = true;
      clearInterval(timer);
      await working;
      await forget().catch(() => undefined);
    },
  };
};
