import { html } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

type Written = HtmlEscapedString | string;

/** How the pages of one user write instants. */
export interface Times {
  /** `21 Nov 2026, 10:05 UTC`, in the user's zone. null: `never`. */
  readonly time: (iso: string | null, never?: string) => Written;
  /** `3 minutes ago`, `in 2 hours`; the instant itself shows on hover. null: `never`. */
  readonly ago: (iso: string | null, never?: string) => Written;
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
/** Without “yesterday”, which 40 hours ago is not. */
const relativeDays = new Intl.RelativeTimeFormat('en');

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

function inWords(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  return (unit === 'day' ? relativeDays : relative).format(Math.trunc(seconds / size), unit);
}

const inZone = new Map<string, Intl.DateTimeFormat>();

/** There are some four hundred zones; a formatter takes half a millisecond to make. */
function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const known = inZone.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
    timeZone,
  });
  inZone.set(timeZone, made);
  return made;
}

/**
 * Reads a UTC day or instant in ISO 8601.
 * @returns milliseconds; null for a date that the calendar or PostgreSQL lacks: `Date.parse` takes 31 February for 3 March
 */
export function instantOf(text: string): number | null {
  const at = Date.parse(text);
  if (Number.isNaN(at) || text.startsWith('0000')) return null;
  return new Date(at).toISOString().slice(0, 10) === text.slice(0, 10) ? at : null;
}

const DAY_MS = 86_400_000;

/** The UTC days up to today, oldest first, as `YYYY-MM-DD`. `now` in milliseconds. */
export const lastDays = (count: number, now: number): readonly string[] =>
  Array.from({ length: count }, (_, nth) =>
    new Date(now - (count - 1 - nth) * DAY_MS).toISOString().slice(0, 10),
  );

/** `zone`: an IANA name. `now` in milliseconds. */
export function timesIn(zone: string, now: number): Times {
  const formatter = formatterOf(zone);
  const written = (text: string, title: string, iso: string): Written =>
    // The library's own type allows promises, of which there are none here.
    html`<time datetime="${new Date(iso).toISOString()}" title="${title}">${text}</time>` as HtmlEscapedString;
  const exact = (iso: string): string => formatter.format(Date.parse(iso));
  return {
    time: (iso, never = 'never') =>
      iso === null ? never : written(exact(iso), new Date(iso).toISOString(), iso),
    ago: (iso, never = 'never') =>
      iso === null ? never : written(inWords(Date.parse(iso) - now), exact(iso), iso),
  };
}
