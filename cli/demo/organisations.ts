/** The made-up companies and ISPs that visit the demo's websites, at public addresses of their countries. */
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import type { Countries } from '../../platform/country.ts';

/** Code, name and city; the legal form of its companies; hours ahead of UTC in winter; and how many of twenty come from there. */
const COUNTRIES = [
  ['US', 'United States', 'Denver', 'Inc.', -7, 6],
  ['DE', 'Germany', 'Hamburg', 'GmbH', 1, 4],
  ['GB', 'United Kingdom', 'Leeds', 'Ltd', 0, 3],
  ['FR', 'France', 'Lyon', 'SAS', 1, 2],
  ['NL', 'Netherlands', 'Utrecht', 'B.V.', 1, 2],
  ['SE', 'Sweden', 'Malmö', 'AB', 1, 1],
  ['JP', 'Japan', 'Osaka', 'K.K.', 9, 1],
  ['AU', 'Australia', 'Perth', 'Pty Ltd', 8, 1],
] as const;
const BY_SHARE = COUNTRIES.flatMap((country) => Array.from({ length: country[5] }, () => country));

const NAMES =
  'Alder Bramble Cobalt Dunmore Ember Fjordline Granite Harrow Inkwell Juniper Kestrel Larch Marlow Nettle Orchard Pinnacle Quarry Redfern Saltmarsh Tidewater';
const TRADES = [
  ['Logistics', 'Transportation'],
  ['Software', 'Technology'],
  ['Foods', 'Consumer Goods'],
  ['Insurance', 'Financial Services'],
  ['Instruments', 'Manufacturing'],
  ['Broadband', 'Telecommunications'],
] as const;

export interface Organisation {
  readonly name: string;
  readonly isIsp: boolean;
  readonly utcOffset: number;
  /** The first three parts of its addresses: `192.0.2` */
  readonly network: string;
  /** Its line of the directory file. */
  readonly record: object;
}

/** Makes a hundred companies and twenty ISPs in random order, each with 256 addresses that the data of countries puts into its country. */
export function inventOrganisations({ countryOf }: Countries): Organisation[] {
  const networkIn = (country: string): string => {
    for (;;) {
      const network = Array.from({ length: 3 }, () => Math.floor(Math.random() * 256)).join('.');
      const isThere = [0, 128, 255].every((last) => {
        const address = `${network}.${last}`;
        return parsePublicAddress(address) !== null && countryOf(address) === country;
      });
      if (isThere) return network;
    }
  };
  const invent = (first: string, [word, industry]: (typeof TRADES)[number]) => {
    const [country_code, country_name, city, legalForm, utcOffset] = pick(BY_SHARE);
    const isIsp = word === 'Broadband';
    const [brand_name, network] = [`${first} ${word}`, networkIn(country_code)];
    const name = `${brand_name} ${legalForm}`;
    const website = `https://${first}-${word}.example`.toLowerCase();
    const [connection_type, audience_type] = isIsp ? ['residential', 'consumer'] : ['corporate', 'business'];
    const employees = 20 + Math.floor(Math.random() ** 3 * 4_000);
    const record = {
      ...{ cidr: `${network}.0/24`, match_type: isIsp ? 'isp' : 'company' },
      network: { connection_type, audience_type, is_isp: isIsp },
      company: { name, brand_name, website, industry, city, country_code, country_name, employees },
    };
    return { name, isIsp, utcOffset, network, record, order: Math.random() };
  };
  const invented = NAMES.split(' ').flatMap((first) => TRADES.map((trade) => invent(first, trade)));
  return invented.sort((a, b) => a.order - b.order);
}

/** Picks one by chance; the greater `skew`, the more often one of the first. */
export const pick = <T>(items: readonly T[], skew = 1): T =>
  items[Math.floor(Math.random() ** skew * items.length)] as T;
