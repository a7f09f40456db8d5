/** Who visits when: a month of the demo's customer, made up by chance. */
import { randomUUID } from 'node:crypto';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { type Organisation, pick } from './organisations.ts';

const VISITS = 4_000;
/** When the endpoint went down, milliseconds before now, and for how long: retries that are left are due in half an hour at the earliest. */
const OUTAGE_BEGAN = 250 * MINUTE;
const OUTAGE_MS = 2 * HOUR;
/** Tabs that open during the outage at any time of day, so that there is something to deliver. */
const TABS_IN_OUTAGE = 30;
/** Index of the website whose sessions a webhook endpoint is told. */
export const PRICING = 1;
const SITES = [0, 0, 0, 0, PRICING, 2, 2];
const CAMPAIGNS = ['newsletter', 'partner-page', 'search', 'trade-fair'];

export interface Period {
  readonly start: number;
  readonly now: number;
}

export const isOutage = ({ now }: Period, at: number): boolean =>
  at >= now - OUTAGE_BEGAN && at < now - OUTAGE_BEGAN + OUTAGE_MS;

export interface Visit {
  readonly at: number;
  /** Index of the website. */
  readonly site: number;
  readonly isFirstOfTab: boolean;
  readonly token: string;
  readonly address: string;
  readonly custom: Readonly<Record<string, string>>;
}

/** Returns an address of an organisation. `many`: how many of its addresses may be meant. */
export const addressOf = ({ network }: Organisation, many: number): string =>
  `${network}.${10 + Math.floor(Math.random() * many)}`;

/** Returns the visits in the order of their times, up to a minute before now. */
export function planVisits(organisations: readonly Organisation[], period: Period) {
  const { start, now } = period;
  const visits: Visit[] = [];
  const companies = organisations.filter(({ isIsp }) => !isIsp);
  const isps = organisations.filter(({ isIsp }) => isIsp);

  const openTab = (at: number, organisation: Organisation, site: number): void => {
    const tab = {
      site,
      token: randomUUID(),
      address: addressOf(organisation, organisation.isIsp ? 100 : 3),
      custom: Math.random() < 0.3 ? { campaign: pick(CAMPAIGNS) } : {},
    };
    const pages = 1 + Math.floor(Math.random() ** 2 * 5);
    for (let page = 0, next = at; page < pages && visits.length < VISITS && next < now - MINUTE; page += 1) {
      visits.push({ at: next, isFirstOfTab: page === 0, ...tab });
      next += (20 + Math.random() * 100) * 1_000;
    }
  };

  for (let tab = 0; tab < TABS_IN_OUTAGE; tab += 1)
    openTab(now - OUTAGE_BEGAN + Math.random() * OUTAGE_MS, pick(isps), PRICING);
  while (visits.length < VISITS) {
    // Some companies come far more often than others, and there are more visits at the end of the month than at its start.
    const organisation = Math.random() < 0.75 ? pick(companies, 2) : pick(isps);
    const midnight = Math.floor((start + Math.random() ** 0.8 * (now - start)) / DAY) * DAY;
    // Companies visit from 8:30 to 18:00 of their own time, people at home all day.
    const hour = organisation.isIsp ? 7 + Math.random() * 16 : 8.5 + (Math.random() + Math.random()) * 4.75;
    const at = midnight + (hour - organisation.utcOffset) * HOUR;
    const isWeekend = new Date(midnight).getUTCDay() % 6 === 0;
    const comes = !isWeekend || Math.random() < (organisation.isIsp ? 0.6 : 0.04);
    if (comes && at > start + HOUR && at < now - MINUTE) openTab(at, organisation, pick(SITES));
  }
  return visits.sort((a, b) => a.at - b.at);
}
