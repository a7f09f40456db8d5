const NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$))+$/;
const LETTERS = /^[\p{L}\p{M}\p{N}.-]+$/u;
/** URLs with such an ending are parsed as an IPv4 address. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const MAX_LENGTH = 253;
/** Letters beyond the BMP take two units. The parser takes quadratic time for longer names. */
const MAX_UNICODE_LENGTH = 2 * MAX_LENGTH;

/** Normalizes a host name to lower case, IDNs as punycode; null if invalid, for addresses and for trailing dots. */
export const hostName = (text: string): string | null => {
  if (text.length > MAX_UNICODE_LENGTH) return null;
  const lower = text.toLowerCase();
  if (isName(lower)) return lower;
  const name = LETTERS.test(text) ? URL.parse(`https://${text}`)?.hostname : undefined;
  return name !== undefined && isName(name) ? name : null;
};

const isName = (text: string): boolean => text.length <= MAX_LENGTH && NAME.test(text) && !NUMBER.test(text);
