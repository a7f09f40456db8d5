/** Limits how many attempts start while the event loop is busy. */
export interface StartsPace {
  /** Returns how many may start now; infinity: not limited. */
  room(): number;
  started(attempts: number): void;
}

/** The event loop's busyness is known no sooner. */
const WINDOW_MS = 200;
/** As many as the endpoints of one partner may have: a process that is busy with other things still gets through what waits. */
const LEAST_PER_SECOND = 1_000;
/** More than a process delivers. */
const MOST_PER_SECOND = 4_000;
const LESS = 0.5;
const MORE = 1.1;
/** What was not used is kept for as long: several times what a poll takes in a busy process. */
const KEPT_MS = 200;

/**
 * Halves the rate of starts for each window in which the event loop was busy, and raises it by a tenth for each other one: thousands
 * of deliveries that were held back come due at once when their receivers work again, and each takes time from all calls.
 * @param now monotonic, milliseconds
 */
export const createStartsPace = (
  isEventLoopBusy: () => boolean,
  now: () => number = () => performance.now(),
): StartsPace => {
  let perSecond = Number.POSITIVE_INFINITY;
  let window = { beganAt: now(), started: 0 };
  let left = 0;
  let filledAt = now();

  const adjust = (): void => {
    const ms = now() - window.beganAt;
    if (ms < WINDOW_MS) return;
    const used = (window.started / ms) * 1_000;
    perSecond = isEventLoopBusy()
      ? Math.max(LEAST_PER_SECOND, Math.min(perSecond, used, MOST_PER_SECOND) * LESS)
      : perSecond * MORE ** (ms / WINDOW_MS);
    if (perSecond > MOST_PER_SECOND) perSecond = Number.POSITIVE_INFINITY;
    window = { beganAt: now(), started: 0 };
  };

  const fill = (): void => {
    const perMs = perSecond / 1_000;
    const earned = (now() - filledAt) * perMs;
    left = perSecond < Number.POSITIVE_INFINITY ? Math.min(left + earned, KEPT_MS * perMs) : 0;
    filledAt = now();
  };

  return {
    room: () => {
      adjust();
      fill();
      if (perSecond === Number.POSITIVE_INFINITY) return perSecond;
      return Math.max(0, Math.floor(left));
    },
    started: (attempts) => {
      window.started += attempts;
      if (perSecond < Number.POSITIVE_INFINITY) left -= attempts;
    },
  };
};
