/** Maximum Retry-After that is honoured. */
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;

/**
 * Parses a Retry-After header (RFC 9110, 10.2.3): seconds, or a date as IMF-fixdate, the only form that senders may use.
 * @param now milliseconds
 * @returns milliseconds, at most 24 hours; null if invalid
 */
export const parseRetryAfter = (
  value: string | readonly string[] | undefined,
  now: number,
): number | null => {
  const text = typeof value === 'string' ? value : value?.[0];
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS);
  const date = Date.parse(text);
  // `Date.parse` accepts almost anything; only IMF-fixdate survives the round trip.
  if (Number.isNaN(date) || new Date(date).toUTCString() !== text) return null;
  return Math.min(Math.max(0, date - now), MAX_RETRY_AFTER_MS);
};
