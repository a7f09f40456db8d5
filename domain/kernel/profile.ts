import { hostName } from './host-name.ts';

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
export const websiteHost = (website: string | null): string | null => {
  if (website === null) return null;
  // The parser ignores these characters, also between the slashes before a long name.
  const text = website.trim().replace(/[\t\n\r]/g, '');
  if ((HOST.exec(text)?.[1] ?? '').length > MAX_HOST_LENGTH) return null;
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  if (url === null || url.username !== '') return null;
  const name = hostName(url.hostname.replace(/\.$/, ''));
  if (!name?.includes('.')) return null;
  return /^www\.([^.]+\..+)$/.exec(name)?.[1] ?? name;
};
