/** Who visits when: a month of the demo's customer, made up by chance from a seed. */
import { randomUUID } from 'node:crypto';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import type { Organisation } from './cast.ts';

export const DAYS = 29;
const VISITS = 4_000;
/** The webhook endpoint was down from here, milliseconds before now, for two hours. */
const OUTAGE_BEGAN = 3 * HOUR + 10 * MINUTE;
const OUTAGE_MS = 2 * HOUR;
/** Tabs that open during the outage at any time of day, so that there is something to deliver. */
const TABS_IN_OUTAGE = 30;

export const outageBefore = (now: number) => {
  const began = now - OUTAGE_BEGAN;
  return (at: number): boolean => at >= began && at < began + OUTAGE_MS;
};

export interface PlannedVisit {
  /** Milliseconds. */
  readonly at: number;
  readonly site: number;
  readonly token: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
}

const CAMPAIGNS = ['newsletter', 'partner-page', 'search', 'trade-fair'] as const;

/** Returns the visits in order of time, from `start` to a minute before `now`. */
export function planVisits(
  organisations: readonly Organisation[],
  { start, now }: { readonly start: number; readonly now: number },
  random: () => number,
): PlannedVisit[] {
  const visits: PlannedVisit[] = [];
  const pick = <T>(items: readonly T[], skew = 1): T =>
    items[Math.floor(random() ** skew * items.length)] as T;
  const companies = organisations.filter(({ isIsp }) => !isIsp);
  const isps = organisations.filter(({ isIsp }) => isIsp);

  const openTab = (at: number, { addresses }: Organisation): void => {
    const [token, address] = [randomUUID(), pick(addresses)];
    const labels: Record<string, string> = random() < 0.3 ? { campaign: pick(CAMPAIGNS) } : {};
    const site = pick([0, 0, 0, 1, 1, 2]);
    const pages = 1 + Math.floor(random() ** 2 * 5);
    for (let page = 0, next = at; page < pages && visits.length < VISITS && next < now - MINUTE; page += 1) {
      visits.push({ at: next, site, token, address, labels });
      next += (20 + random() * 100) * 1_000;
    }
  };

  for (let tab = 0; tab < TABS_IN_OUTAGE; tab += 1)
    openTab(now - OUTAGE_BEGAN + random() * OUTAGE_MS, pick(isps));
  while (visits.length < VISITS) {
    // Some companies come far more often than others, and there are more visits at the end of the month than at its start.
    const organisation = random() < 0.75 ? pick(companies, 2) : pick(isps);
    const day = Math.floor(random() ** 0.8 * (DAYS + 1));
    const hour = organisation.isIsp ? 7 + random() * 16 : 8.5 + (random() + random()) * 4.75;
    const midnight = Math.floor(start / DAY) * DAY + day * DAY;
    const at = midnight + (hour - organisation.utcOffset) * HOUR;
    const weekday = new Date(midnight).getUTCDay();
    const isWeekend = weekday === 0 || weekday === 6;
    if (at < start + HOUR || at > now - 2 * MINUTE) continue;
    if (isWeekend && random() > (organisation.isIsp ? 0.6 : 0.04)) continue;
    openTab(at, organisation);
  }
  return visits.sort((a, b) => a.at - b.at);
}
