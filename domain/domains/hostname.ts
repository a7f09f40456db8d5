import { parseAddress } from '../kernel/address.ts';

/** A label for which certificates are issued, so without the underscore that origins may have. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_LENGTH = 253;

/**
 * Returns whether a host name may become a custom domain: at least two labels, lower case, IDNs as punycode, no address, no
 * trailing dot. Other spellings are rejected, not normalized, as with origins. Nor can it be one of the service's own names or a
 * name below one: under an active custom domain all partners find the pixel alone.
 * @param ownHosts the service's own host names
 */
export const isDomainName = (text: string, ownHosts: readonly string[]): boolean =>
  isHostname(text) && !ownHosts.some((own) => text === own || text.endsWith(`.${own}`));

/** Does the same for any host name, including the service's own. */
export const isHostname = (text: string): boolean => {
  if (text.length > MAX_LENGTH || !text.includes('.') || !text.split('.').every(isLabel)) return false;
  // Rejects `1.2.3.4`, and what browsers parse as an address, such as `1.2.0x3`.
  return parseAddress(text) === null && URL.parse(`https://${text}`)?.hostname === text;
};

const isLabel = (label: string): boolean => LABEL.test(label);

/** Normalizes a name from DNS for comparison: lower case, no trailing dot. */
export const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '');
