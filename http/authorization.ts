/** Which API key a request shows (contract, Requests 1; RFC 6750 section 2.1). */

/** One space: RFC 9110 section 11.4 lets a recipient refuse more, and contract, Requests 1 does. */
const BEARER = /^bearer ([\w\-.~+/]+=*)$/i;

/** Longer than any key. Longer text is not searched for in the URL, which takes quadratic time. */
const MAX_TOKEN_LENGTH = 64;

/**
 * The value of a header sent exactly once; undefined without one, null for several. Node keeps the first
 * of several Authorization or Content-Type headers and drops the others silently, hence the raw list.
 */
export function soleHeader(rawHeaders: readonly string[], name: string): string | null | undefined {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const found = rawHeaders[at];
    if (found === undefined || found.length !== name.length || found.toLowerCase() !== name) continue;
    if (value !== undefined) return null;
    value = rawHeaders[at + 1];
  }
  return value;
}

/**
 * The token of the one Authorization header, or null where the answer is 401: no header or several,
 * another scheme, not exactly one space, no key by its length, or a key that also stands in the URL, where logs would
 * keep it.
 */
export function bearerToken(rawHeaders: readonly string[], query: string): string | null {
  const value = soleHeader(rawHeaders, 'authorization');
  const token = value ? BEARER.exec(value)?.[1] : undefined;
  if (token === undefined || token.length > MAX_TOKEN_LENGTH || query.includes(token)) return null;
  return token;
}
