import { hostName } from './host-name.ts';

/** What of a company tells it from another. */
export interface Named {
  readonly name: string | null;
  readonly brand_name: string | null;
}

/** What a company is called, for telling profiles apart: each address of a company has a result of its own. */
export const profileName = ({ name, brand_name }: Named): string =>
  (name ?? brand_name ?? '').trim().replace(/\s+/g, ' ').toLowerCase();

/** The host name of a company's website, without `www.`; null where it tells none. Its scheme may be missing. */
export const websiteHost = (website: string | null): string | null => {
  if (website === null) return null;
  const text = website.trim();
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  if (url === null || url.username !== '') return null;
  const name = hostName(url.hostname.replace(/\.$/, ''));
  if (!name?.includes('.')) return null;
  return /^www\.([^.]+\..+)$/.exec(name)?.[1] ?? name;
};
