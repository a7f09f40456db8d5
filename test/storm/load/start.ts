import { createFollowers } from './feed.ts';
import type { Load } from './load.ts';
import { pollAddress, submitAddress } from './lookups.ts';
import { type Pace, repeatAtPace } from './pace.ts';
import { readRecentReceipt, revealSession } from './reveals.ts';
import { visit } from './visits.ts';

const pace = (perSecond: number): Pace => ({ perSecond, maxConcurrent: Math.ceil(perSecond * 10) });

/** Starts all clients: some 30 requests a second. @returns stops them after their current requests */
export const startLoad = (load: Load): (() => Promise<void>) => {
  const stops = [
    repeatAtPace(pace(6), () => submitAddress(load)),
    repeatAtPace(pace(6), () => pollAddress(load)),
    repeatAtPace(pace(5), () => visit(load)),
    repeatAtPace(pace(4), createFollowers(load)),
    repeatAtPace(pace(4), () => revealSession(load)),
    repeatAtPace(pace(4), () => readRecentReceipt(load)),
  ];
  return async () => void (await Promise.all(stops.map((stop) => stop())));
};
