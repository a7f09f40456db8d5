const NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$))+$/;
const LETTERS = /^[\p{L}\p{M}\p{N}.-]+$/u;
/** What URLs read as the end of an IPv4 address. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const LONGEST = 253;

/** A host name in lower case, IDNs as punycode; null for anything else, addresses and trailing dots included. */
export const hostName = (text: string): string | null => {
  const lower = text.toLowerCase();
  if (isName(lower)) return lower;
  const name = LETTERS.test(text) ? URL.parse(`https://${text}`)?.hostname : undefined;
  return name !== undefined && isName(name) ? name : null;
};

const isName = (text: string): boolean => text.length <= LONGEST && NAME.test(text) && !NUMBER.test(text);
