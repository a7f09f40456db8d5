import { companyRecord } from '../../cli/installation/company-record.ts';

/** From 20.0.0.0 to 89.255.255.255: public throughout. */
const FIRST = 20 * 2 ** 24;
const BLOCKS = 70;
const COUNT = BLOCKS * 2 ** 24;
/** Prime to `COUNT`, so that no address repeats; large, so that neighbours lie apart. */
const STRIDE = 104_729;

/** The address of a number below `COUNT`: each number has a different one, scattered over all blocks. */
export const addressOf = (index: number): string => {
  const value = FIRST + ((index * STRIDE) % COUNT);
  return `${Math.floor(value / 2 ** 24)}.${(value >> 16) & 255}.${(value >> 8) & 255}.${value & 255}`;
};

/** The same in SQL, from a column with the number. */
export const sqlAddressOf = (column: string): string =>
  `host('0.0.0.0'::inet + (${FIRST} + ${column}::bigint * ${STRIDE} % ${COUNT}))`;

/** Prime, and so coprime to any power of ten. */
const LEAP = 7_919;

/** Permutes the numbers below `among`, a power of ten. */
export const leap = (index: number, among: number): number => (index * LEAP) % among;

/** A directory (JSON Lines) with a company for two blocks of three, and a provider's network for the third. */
export const directoryOfBlocks = (): string =>
  Array.from({ length: BLOCKS }, (_, block) => {
    const cidr = `${20 + block}.0.0.0/8`;
    return JSON.stringify(block % 3 === 2 ? { cidr, ...ISP } : { cidr, ...companyRecord(block) });
  }).join('\n');

const ISP = {
  match_type: 'isp',
  network: { connection_type: 'residential', audience_type: 'consumer', is_isp: true },
  company: { name: 'Example Broadband' },
} as const;
