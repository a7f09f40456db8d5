import pTimeout from 'p-timeout';
import type pg from 'pg';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import { websiteHost } from '../../domain/kernel/profile.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { candidateOf, type SeenDomain } from '../../domain/signals/candidates.ts';
import { KEPT_DAYS, visitorText } from '../../domain/signals/events.ts';
import type { ShownCompany } from '../../http/contract/schemas/company.ts';
import {
  type CluesOf,
  type CompanySignals,
  UNAVAILABLE_SIGNALS,
} from '../../http/contract/schemas/company-signals.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type DayKeys, tryToOpen } from '../../platform/crypto/keyring.ts';
import { createSemaphores } from '../../platform/limits/semaphore.ts';
import {
  readProfiles,
  readSeenDomains,
  readSignalDays,
  type SeenDomainRow,
} from '../../queries/signals/signals.ts';

export interface CluesDeps {
  /** For clues alone, so that they take no connection from other lookups. */
  readonly pool: pg.Pool;
  readonly dayKeys: DayKeys;
  readonly clock: Clock;
  /** Time limit, milliseconds; then the answer has no clues. */
  readonly limitMs: number;
  /** Called for each answer without clues. */
  readonly onUnavailable: () => void;
}

/** Contract, Company signals. */
const MOST_CANDIDATES = 10;

/** Of three connections: an address of a mobile network may have so many clues that a hundred lookups a second would take all. */
const CONNECTIONS_PER_PARTNER = 2;

/** The clues about an address, as far as they can be read at once. Never throws. */
export const createClues = (deps: CluesDeps): CluesOf => {
  const { limitMs, onUnavailable } = deps;
  const semaphores = createSemaphores({ limit: CONNECTIONS_PER_PARTNER, maxWaitMs: limitMs });
  return async (partnerId, text, found) => {
    const reading = semaphores.enter(partnerId, () => read(deps, text, found));
    const signals = await pTimeout(reading, { milliseconds: limitMs }).catch(() => UNAVAILABLE_SIGNALS);
    if (signals === UNAVAILABLE_SIGNALS) onUnavailable();
    return signals;
  };
};

const read = async (
  { pool, dayKeys, clock }: CluesDeps,
  text: string | null,
  found: ShownCompany | null,
): Promise<CompanySignals> => {
  const ip = text === null ? null : parsePublicAddress(text);
  if (ip === null) return UNAVAILABLE_SIGNALS;
  const since = clock.now() - KEPT_DAYS * DAY;
  const visitors = await visitorsOf(dayKeys, ip, await readSignalDays(pool, utcDay(since)));
  if (visitors.length === 0) return available([], false);
  const { domains, complete } = await readSeenDomains(pool, visitors, since, MOST_CANDIDATES);
  const opened = await Promise.all(domains.map((row) => open(dayKeys, row)));
  const seen = opened.filter((one) => one !== null);
  if (seen.length === 0) return available([], false);
  const profiles = await readProfiles<ShownCompany>(
    pool,
    seen.map(({ domain }) => domain),
  );
  const savedCompany = found && { company: found, host: websiteHost(found.website) };
  const candidates = seen.map((one) => candidateOf(one, profiles.get(one.domain) ?? null, savedCompany));
  return available(candidates, !complete);
};

const available = (candidates: CompanySignals['candidates'], truncated: boolean): CompanySignals => ({
  status: 'available',
  window_days: KEPT_DAYS,
  truncated,
  candidates,
});

/** What the address is known as on each of the days whose key is still there. */
const visitorsOf = async (dayKeys: DayKeys, ip: string, days: readonly string[]): Promise<string[]> => {
  const keys = await Promise.all(days.map((day) => dayKeys.of(day)));
  return keys.flatMap((key) => (key === null ? [] : [key.digest(visitorText(ip))]));
};

/** null: its day has expired at this moment, or its key was destroyed before. */
const open = async (dayKeys: DayKeys, row: SeenDomainRow): Promise<SeenDomain | null> => {
  const key = await dayKeys.of(row.day);
  const domain = key && tryToOpen(key, row.sealed, row.domain);
  if (domain === null) return null;
  const { observations, submitted_observations, observed_visits, sites } = row;
  return {
    domain: domain.toString(),
    first_seen_at: isoTime(row.first_seen_at.getTime()),
    last_seen_at: isoTime(row.last_seen_at.getTime()),
    observations,
    submitted_observations,
    observed_visits,
    sites,
  };
};
