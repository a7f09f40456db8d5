/** How the owner of a host name shows whose it is: a TXT record that holds the partner's token. */

export interface TxtResolver {
  resolveTxt(name: string): Promise<string[][]>;
  /** Ends what it was asked. */
  cancel(): void;
}

/** Where the record stands. */
export const proofName = (hostname: string): string => `_doorplate.${hostname}`;

/**
 * Makes the token of a partner for a name, which nobody can guess.
 * @param digest keyed
 */
export const proofToken = (digest: (text: string) => string, hostname: string, partnerId: string): string =>
  digest(`domain proof ${partnerId} ${hostname}`);

/**
 * Looks whether the name's TXT record holds a token.
 * @param signal ends the look; false then, and whenever DNS does not answer
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
    // A long value comes in pieces (RFC 7208 section 3.3).
    return records.some((pieces) => pieces.join('').trim() === token);
  } catch {
    return false;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};
