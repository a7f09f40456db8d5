/** One spelling for each address, so that each is looked up once; other text stays as it is. */
export const canonicalAddress = (text: string): string => {
  const trimmed = text.trim();
  // A URL's parser would pass over what is no part of an address.
  if (!/^[\da-f.]*:[\da-f:.]*$/i.test(trimmed)) return trimmed;
  const url = `http://[${trimmed}]`;
  if (!URL.canParse(url)) return trimmed;
  const compressed = new URL(url).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(compressed);
  if (!mapped) return compressed;
  const [high, low] = [mapped[1], mapped[2]].map((group) => Number.parseInt(group ?? '0', 16));
  return [high, low].flatMap((group = 0) => [group >> 8, group & 255]).join('.');
};
