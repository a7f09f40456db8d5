/**
 * What the pages about visitors and usage show: a period of whole UTC days and one website or all. Both stand in the URL and go
 * from page to page with every link of the navigation.
 */
import { instantOf } from './times.ts';

const DAY_MS = 86_400_000;

const PRESETS = {
  today: { text: 'Today', days: 1 },
  '7d': { text: 'Last 7 days', days: 7 },
  '30d': { text: 'Last 30 days', days: 30 },
  '90d': { text: 'Last 90 days', days: 90 },
} as const;
type Preset = keyof typeof PRESETS;

export const USUAL: Preset = '7d';
/** Longest custom period. */
export const LONGEST_DAYS = 366;

/** Sessions and reveals are kept so long; usage is kept for longer. */
export const SESSIONS_KEPT_DAYS = 30;

/** The choices of the period's select, `custom` last. */
export const PERIODS: readonly (readonly [value: string, text: string])[] = [
  ...Object.entries(PRESETS).map(([value, { text }]) => [value, text] as const),
  ['custom', 'Custom'],
];

export interface Period {
  readonly name: Preset | 'custom';
  /** In words: `Last 7 days`, `1 Nov to 9 Nov 2026`. */
  readonly text: string;
  /** The UTC days, oldest first, as `YYYY-MM-DD`; none where the period that was asked for is not understood. */
  readonly days: readonly string[];
  /** ISO 8601, inclusive. */
  readonly from: string;
  /** ISO 8601, exclusive. */
  readonly to: string;
}

export interface Scope {
  readonly period: Period;
  /** A tracker's id; null: all websites. */
  readonly trackerId: string | null;
  /** Whether the dates are no period. What is not understood stays as it was given, is marked, and finds nothing. */
  readonly isRefused: boolean;
  /** The parameters that keep the scope in a link; the usual ones are left out. */
  readonly query: Readonly<Record<string, string>>;
}

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The UTC days from one instant's to another's (milliseconds), oldest first. */
function daysBetween(first: number, last: number): string[] {
  const days: string[] = [];
  for (let at = first; at <= last; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

/** A tracker that nobody has, for an id that is none. */
const NO_TRACKER = '00000000-0000-0000-0000-000000000000';
const LONGEST_PARAMETER = 100;

/** Reads the scope from a page's query. `now` in milliseconds. */
export function scopeIn(query: URLSearchParams, now: number): Scope {
  const given = (name: string): string => (query.get(name) ?? '').slice(0, LONGEST_PARAMETER);
  const name = given('period') || USUAL;
  const known = name === 'custom' ? customIn(query, now) : preset(name, now);
  const period = known ?? periodOf('custom', 'No period', startOfDay(now), startOfDay(now) - DAY_MS);
  const tracker = given('tracker_id');
  return {
    period,
    trackerId: tracker === '' ? null : UUID.test(tracker) ? tracker : NO_TRACKER,
    isRefused: known === null && name === 'custom',
    query: {
      ...(name === USUAL ? {} : { period: name }),
      ...(name !== 'custom'
        ? {}
        : known === null
          ? { from: given('from'), to: given('to') }
          : { from: known.days[0] ?? '', to: known.days.at(-1) ?? '' }),
      ...(tracker === '' ? {} : { tracker_id: tracker }),
    },
  };
}

function preset(name: string, now: number): Period | null {
  if (!Object.hasOwn(PRESETS, name)) return null;
  const { text, days } = PRESETS[name as Preset];
  const last = startOfDay(now);
  return periodOf(name as Preset, text, last - (days - 1) * DAY_MS, last);
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** Older than any visit, and far from the years that PostgreSQL lacks, also for the period before. */
const EARLIEST = Date.UTC(2000);

function customIn(query: URLSearchParams, now: number): Period | null {
  const [from, to] = ['from', 'to'].map((name) => {
    const text = query.get(name) ?? '';
    return (DATE.test(text) ? instantOf(text) : null) ?? Number.NaN;
  }) as [number, number];
  const last = Math.min(to, startOfDay(now));
  // Also false for a day that the calendar does not have.
  if (!(from >= EARLIEST && from <= last && last - from < LONGEST_DAYS * DAY_MS)) return null;
  return periodOf('custom', `${dayText(from)} to ${dayText(last)}`, from, last);
}

const periodOf = (name: Period['name'], text: string, first: number, last: number): Period => ({
  name,
  text,
  days: daysBetween(first, last),
  from: new Date(first).toISOString(),
  to: new Date(last + DAY_MS).toISOString(),
});

const startOfDay = (now: number): number => now - (now % DAY_MS);

const day = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});
const dayText = (ms: number): string => day.format(ms);

/** The period of the same length that ends where this one begins. */
export function periodBefore({ days, from }: Period): Period {
  const end = Date.parse(from);
  return periodOf('custom', 'the period before', end - days.length * DAY_MS, end - DAY_MS);
}

/** Whether sessions and reveals of the whole period can still be kept. `now` in milliseconds. */
export const isKept = ({ from }: Period, now: number): boolean =>
  Date.parse(from) > now - SESSIONS_KEPT_DAYS * DAY_MS - DAY_MS;

/** A path with these parameters; '' and undefined are left out. */
export function linkTo(
  path: string,
  ...given: readonly Readonly<Record<string, string | undefined>>[]
): string {
  const query = new URLSearchParams();
  for (const [name, value] of given.flatMap((one) => Object.entries(one))) {
    if (value !== undefined && value !== '') query.set(name, value);
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The website and the period as the name of a file says them: `shop-example-2026-11-01-2026-11-09`. `website` null: all. */
export function fileScope({ period: { days } }: Scope, website: string | null = null): string {
  const name = (website ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST_FILE_PART);
  const parts = [name.replace(/^-|-$/g, ''), days.length === 0 ? 'no-period' : `${days[0]}-${days.at(-1)}`];
  return parts.filter((part) => part !== '').join('-');
}

const LONGEST_FILE_PART = 60;
