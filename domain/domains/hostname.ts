import { parseAddress } from '../kernel/address.ts';

/** A label that certificates are issued for, so without the underscore that some origins have. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const LONGEST = 253;

/**
 * Whether a host name may become a custom domain: at least two labels, lower case, IDNs as punycode, no address, no
 * trailing dot. What is not in that form is refused, not mended, as with origins.
 * @param serviceHost the service's own name
 */
export const isDomainName = (text: string, serviceHost: string): boolean =>
  isHostname(text) && text !== serviceHost;

/** The same, whoever has it. */
export const isHostname = (text: string): boolean => {
  if (text.length > LONGEST || !text.includes('.') || !text.split('.').every(isLabel)) return false;
  // `1.2.3.4`, and what browsers read as an address, such as `1.2.0x3`.
  return parseAddress(text) === null && URL.parse(`https://${text}`)?.hostname === text;
};

const isLabel = (label: string): boolean => LABEL.test(label);

/** A name as DNS gives it, in the form that names are compared in: case and the root's dot mean nothing there. */
export const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '');
