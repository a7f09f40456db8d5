import { type Response as MmdbRecord, Reader } from 'maxmind';

/** An MMDB file in memory. */
export interface Mmdb {
  /** `database_type` of its metadata. */
  readonly type: string;
  /** Returns the record of a canonical address; null if there is none. */
  find(ip: string): unknown;
  /** Returns up to `count` records from the beginning of its IPv4 space, or else of its IPv6 space. */
  sample(count: number): unknown[];
}

/** Blocks without a record that `sample` passes over. */
const MAX_STEPS = 10_000;
const SEPARATOR_BYTES = 16;

/** Opens an MMDB file's content and reads a record. @throws Error if the content is damaged */
export const openMmdb = (content: Buffer): Mmdb => {
  const reader = new Reader<MmdbRecord>(content);
  const { databaseType, ipVersion, searchTreeSize } = reader.metadata;
  if (searchTreeSize + SEPARATOR_BYTES > content.length) throw new Error('the file is cut off');
  const mmdb: Mmdb = {
    type: databaseType,
    // A lookup of an IPv6 address in an IPv4 tree would read past its end.
    find: (ip) => (ip.includes(':') && ipVersion !== 6 ? null : reader.get(ip)),
    sample: (count) => {
      const ipv4 = recordsFrom(reader, 32, count);
      return ipv4.length > 0 || ipVersion !== 6 ? ipv4 : recordsFrom(reader, 128, count);
    },
  };
  mmdb.sample(1);
  return mmdb;
};

/** Steps from block to block, because the library has no iterator. */
const recordsFrom = (reader: Reader<MmdbRecord>, bits: 32 | 128, count: number): unknown[] => {
  const records: unknown[] = [];
  let at = 0n;
  for (let step = 0; step < MAX_STEPS && records.length < count && at < 1n << BigInt(bits); step += 1) {
    const [record, length] = reader.getWithPrefixLength(bits === 32 ? ipv4Of(at) : ipv6Of(at));
    if (record !== null) records.push(record);
    const size = 1n << BigInt(bits - Math.min(length, bits));
    at = (at / size + 1n) * size;
  }
  return records;
};

const ipv4Of = (at: bigint): string =>
  [24n, 16n, 8n, 0n].map((shift) => String((at >> shift) & 255n)).join('.');

const ipv6Of = (at: bigint): string =>
  Array.from({ length: 8 }, (_, group) => ((at >> BigInt(112 - 16 * group)) & 0xffffn).toString(16)).join(
    ':',
  );

/** Returns the names of a record's fields, nested ones as `traits.user_type`, sorted. */
export const fieldNames = (record: unknown, prefix = ''): string[] => {
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    return prefix === '' ? [] : [prefix];
  return Object.entries(record)
    .flatMap(([name, value]) => fieldNames(value, prefix === '' ? name : `${prefix}.${name}`))
    .sort();
};
