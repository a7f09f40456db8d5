/** Returns whether a text is a name to show in lists: as `isText`, without control characters. */
export const isName = (text: string, longest: number): boolean =>
  isText(text, longest) && !/\p{Cc}/u.test(text);

/** Returns whether a text has 1 to `longest` code points, without NUL and lone surrogates, which PostgreSQL rejects. */
export function isText(text: string, longest: number): boolean {
  if (text.length > 2 * longest) return false;
  const length = [...text].length;
  return length >= 1 && length <= longest && !text.includes('\u0000') && text.isWellFormed();
}

/** Longer than any allowed name or password, of 200 characters, however its letters are composed. */
const MAX_COMPOSED_LENGTH = 800;

/**
 * Normalizes a text (NFKC). Over 800 UTF-16 units it is returned unchanged, because normalization takes quadratic time for a
 * run of combining marks, and callers may send 64 KiB.
 */
export const composed = (text: string): string =>
  text.length > MAX_COMPOSED_LENGTH ? text : text.normalize('NFKC');

const ASCII = /^\p{ASCII}*$/u;

/**
 * Returns the form in which searches compare a text: NFKC and full case folding (Unicode 5.18, so ß is ss and ς is σ), without
 * the dot that the folding of İ leaves above its i. Other marks stay: `Müller` and `Muller` are two names.
 */
export const searchKey = (text: string): string =>
  ASCII.test(text)
    ? text.toLowerCase()
    : composed(Array.from(composed(text), foldCase).join('')).replaceAll('i\u0307', 'i');

/** One code point at a time, because a whole word in lower case ends in ς. The dotless ı has no other case to Unicode. */
const foldCase = (letter: string): string =>
  letter === 'ı' ? letter : letter.toLowerCase().toUpperCase().toLowerCase();

const NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!$)|$))+$/;
const LETTERS = /^[\p{L}\p{M}\p{N}.-]+$/u;
/** URLs with such an ending are parsed as an IPv4 address. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const MAX_LENGTH = 253;
/** Letters beyond the BMP take two units. The parser takes quadratic time for longer names. */
const MAX_UNICODE_LENGTH = 2 * MAX_LENGTH;

/** Normalizes a host name to lower case, IDNs as punycode; null if invalid, for addresses and for trailing dots. */
export function hostName(text: string): string | null {
  if (text.length > MAX_UNICODE_LENGTH) return null;
  const lower = text.toLowerCase();
  if (isHostName(lower)) return lower;
  const name = LETTERS.test(text) ? URL.parse(`https://${text}`)?.hostname : undefined;
  return name !== undefined && isHostName(name) ? name : null;
}

const isHostName = (text: string): boolean =>
  text.length <= MAX_LENGTH && NAME.test(text) && !NUMBER.test(text);

/** The identifying names of a company. */
export interface Named {
  readonly name: string | null;
  readonly brand_name: string | null;
}

/** Code points of a name that are compared. The name is indexed, and an index refuses rows of 2,704 bytes. */
const MAX_COMPARED = 200;

/** Normalizes a company's name for comparing profiles, because each address has its own copy of the company. */
export const profileName = ({ name, brand_name }: Named): string =>
  beginningOf((name ?? brand_name ?? '').trim().replace(/\s+/g, ' ').toLowerCase());

const beginningOf = (text: string): string =>
  text.length <= MAX_COMPARED ? text : [...text.slice(0, 2 * MAX_COMPARED)].slice(0, MAX_COMPARED).join('');

/** Longer than any host name and port: the parser takes quadratic time for long names with non-ASCII letters. */
const MAX_HOST_LENGTH = 260;
const HOST = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[/\\]*([^/?#\\]*)/i;

/** Returns the host name of a company's website without `www.`; null if invalid. The URL's scheme may be missing. */
export function websiteHost(website: string | null): string | null {
  if (website === null) return null;
  // The parser ignores these characters, also between the slashes before a long name.
  const text = website.trim().replace(/[\t\n\r]/g, '');
  if ((HOST.exec(text)?.[1] ?? '').length > MAX_HOST_LENGTH) return null;
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  if (url === null || url.username !== '') return null;
  const name = hostName(url.hostname.replace(/\.$/, ''));
  if (!name?.includes('.')) return null;
  return /^www\.([^.]+\..+)$/.exec(name)?.[1] ?? name;
}
