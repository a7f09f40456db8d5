/** Times, numbers, durations and sizes as people read them. */
import { DAY, MINUTE } from '../domain/kernel/time.ts';

const TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
});

/** Formats an instant as people write it: `28 Nov 2026, 10:05 UTC`. */
export const timeText = (at: Date): string => `${TIME.format(at)} UTC`;

export const countText = (value: number): string => value.toLocaleString('en-US');

const UNITS: readonly (readonly [string, number])[] = [
  ['d', DAY],
  ['h', 60 * MINUTE],
  ['min', MINUTE],
  ['s', 1_000],
];

/** Formats a duration by its two largest units: `1 h 5 min`. */
export function durationText(ms: number): string {
  const first = UNITS.findIndex(([, size]) => ms >= size);
  if (first === -1) return `${Math.round(ms)} ms`;
  let rest = ms;
  const parts = UNITS.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? '' : `${count} ${unit}`;
  });
  return parts.filter((part) => part !== '').join(' ');
}

/** Formats bytes by binary units: `1.5 GiB`. */
export function bytesText(bytes: number): string {
  const exponent = Math.min(4, Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10));
  const value = bytes / 1_024 ** exponent;
  return `${exponent === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][exponent]}`;
}
