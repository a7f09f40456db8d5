/** Spec, Limits: a receiver's Retry-After is honoured so far. */
const LONGEST_MS = 24 * 3_600_000;

/**
 * How long a receiver asks to be left alone (RFC 9110, 10.2.3): seconds, or a date in the one form that is sent
 * (IMF-fixdate). At most 24 hours; null where it says nothing that can be understood.
 * @param now milliseconds
 */
export const parseRetryAfter = (
  value: string | readonly string[] | undefined,
  now: number,
): number | null => {
  const text = typeof value === 'string' ? value : value?.[0];
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, LONGEST_MS);
  const date = Date.parse(text);
  // `Date.parse` takes nearly everything: only what comes out as it went in is that form.
  if (Number.isNaN(date) || new Date(date).toUTCString() !== text) return null;
  return Math.min(Math.max(0, date - now), LONGEST_MS);
};
