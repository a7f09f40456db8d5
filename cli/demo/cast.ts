/** The made-up companies and ISPs that visit the demo's websites, at public addresses of their countries. */
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import type { Countries } from '../../platform/country.ts';

interface Land {
  readonly code: string;
  readonly name: string;
  readonly city: string;
  readonly legalForm: string;
  /** Hours that its clocks are ahead of UTC, in winter. */
  readonly utcOffset: number;
  /** How many of twenty visitors come from it. */
  readonly share: number;
}

const LANDS: readonly Land[] = [
  { code: 'US', name: 'United States', city: 'Denver', legalForm: 'Inc.', utcOffset: -7, share: 6 },
  { code: 'DE', name: 'Germany', city: 'Hamburg', legalForm: 'GmbH', utcOffset: 1, share: 4 },
  { code: 'GB', name: 'United Kingdom', city: 'Leeds', legalForm: 'Ltd', utcOffset: 0, share: 3 },
  { code: 'FR', name: 'France', city: 'Lyon', legalForm: 'SAS', utcOffset: 1, share: 2 },
  { code: 'NL', name: 'Netherlands', city: 'Utrecht', legalForm: 'B.V.', utcOffset: 1, share: 2 },
  { code: 'SE', name: 'Sweden', city: 'Malmö', legalForm: 'AB', utcOffset: 1, share: 1 },
  { code: 'JP', name: 'Japan', city: 'Osaka', legalForm: 'K.K.', utcOffset: 9, share: 1 },
  { code: 'AU', name: 'Australia', city: 'Perth', legalForm: 'Pty Ltd', utcOffset: 8, share: 1 },
];

const FIRST_NAMES = [
  'Alder',
  'Bramble',
  'Cobalt',
  'Dunmore',
  'Ember',
  'Fjordline',
  'Granite',
  'Harrow',
  'Inkwell',
  'Juniper',
  'Kestrel',
  'Lanternway',
  'Marlow',
  'Nettle',
  'Orchard',
  'Pinnacle',
  'Quarry',
  'Redfern',
  'Saltmarsh',
  'Tidewater',
] as const; // prettier-ignore
const TRADES = [
  ['Logistics', 'Transportation', 'Freight'],
  ['Software', 'Technology', 'Business Software'],
  ['Foods', 'Consumer Goods', 'Food Production'],
  ['Insurance', 'Financial Services', 'Insurance'],
  ['Instruments', 'Manufacturing', 'Precision Instruments'],
] as const;
const ISP_TRADES = ['Broadband'] as const;

/** A visitor's organisation, and the addresses that it has. */
export interface Organisation {
  readonly name: string;
  readonly isIsp: boolean;
  readonly country: string;
  readonly utcOffset: number;
  readonly addresses: readonly string[];
  /** Its line of the directory file. */
  readonly record: object;
}

/** Returns a function that gives the same numbers from 0 to 1 for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Makes the hundred companies and twenty ISPs, each with a network of 256 addresses that the country data puts into its country. */
export function inventOrganisations({ countryOf }: Countries, random: () => number): Organisation[] {
  const lands = LANDS.flatMap((land) => Array<Land>(land.share).fill(land));
  const taken = new Set<string>();
  const networkIn = (country: string): string => {
    for (;;) {
      const network = [random(), random(), random()].map((part) => Math.floor(part * 256)).join('.');
      const isThere = [0, 128, 255].every((last) => {
        const address = `${network}.${last}`;
        return parsePublicAddress(address) !== null && countryOf(address) === country;
      });
      if (!isThere || taken.has(network)) continue;
      taken.add(network);
      return network;
    }
  };
  const invent = (first: string, trade: readonly [string, string, string] | null): Organisation => {
    const land = lands[Math.floor(random() * lands.length)] as Land;
    const network = networkIn(land.code);
    const [word, industry, subcategory] = trade ?? [
      ISP_TRADES[0],
      'Telecommunications',
      'Internet Service Provider',
    ];
    const name = `${first} ${word} ${land.legalForm}`;
    const size = trade === null ? 40 : 1 + Math.floor(random() * 4);
    return {
      name,
      isIsp: trade === null,
      country: land.code,
      utcOffset: land.utcOffset,
      addresses: Array.from({ length: size }, (_, index) => `${network}.${10 + index * 5}`),
      record: {
        cidr: `${network}.0/24`,
        match_type: trade === null ? 'isp' : 'company',
        network: {
          connection_type: trade === null ? 'residential' : 'corporate',
          audience_type: trade === null ? 'consumer' : 'business',
          is_isp: trade === null,
        },
        company: {
          name,
          brand_name: `${first} ${word}`,
          website: `https://${first}-${word}.example`.toLowerCase(),
          industry,
          industry_subcategory: subcategory,
          city: land.city,
          country_code: land.code,
          country_name: land.name,
          employees: 20 + Math.floor(random() ** 3 * 4_000),
        },
      },
    };
  };
  return FIRST_NAMES.flatMap((first) => [
    ...TRADES.map((trade) => invent(first, trade)),
    invent(first, null),
  ]);
}
