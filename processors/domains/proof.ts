/** Ownership proof of a host name: a TXT record that holds the partner's token. */

export interface TxtResolver {
  resolveTxt(name: string): Promise<string[][]>;
  cancel(): void;
}

/** Returns the name of the TXT record. */
export const proofName = (hostname: string): string => `_doorplate.${hostname}`;

/**
 * Derives the token of a partner for a host name.
 * @param digest keyed digest, so that tokens cannot be guessed
 */
export const proofToken = (digest: (text: string) => string, hostname: string, partnerId: string): string =>
  digest(`domain proof ${partnerId} ${hostname}`);

/**
 * Checks whether the name's TXT record holds the token.
 * @param signal cancels the DNS query; the result is then false, as for any DNS failure
 */
export const hasToken = async (
  resolver: TxtResolver,
  hostname: string,
  token: string,
  signal: AbortSignal,
): Promise<boolean> => {
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    if (signal.aborted) return false;
    const records = await resolver.resolveTxt(proofName(hostname));
    // DNS splits a long TXT value into several strings (RFC 7208 section 3.3).
    return records.some((pieces) => pieces.join('').trim() === token);
  } catch {
    return false;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};
