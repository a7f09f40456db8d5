import type { Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { type Response as MmdbRecord, Reader } from 'maxmind';
import type { Logger } from 'pino';

interface ReloadingFile<T> {
  /** Returns the last good content. */
  current(): T;
  close(): void;
}

interface ReloadingFileOptions<T> {
  readonly file: string;
  readonly parse: (content: Buffer) => T | Promise<T>;
  readonly log: Logger;
  /** Names the provider in log lines and errors. */
  readonly provider: string;
  /** Begins the error at startup: the variable that names the file. */
  readonly variable: string;
  readonly onReload?: ((outcome: 'reloaded' | 'failed') => void) | undefined;
}

const CHECK_MS = 2_000;

/**
 * Keeps a file's content in memory and reads it again within seconds when it changes. Lookups use the old content
 * until the new one is complete; if that cannot be read, the old one stays in use. A file that changes between two looks, two seconds
 * apart, is being written: what it holds then, such as nothing, would be taken for all.
 * @throws Error that names the variable, the file and the fault, at startup only
 */
export async function openReloadingFile<T>({
  file,
  parse,
  log,
  provider,
  variable,
  onReload = () => undefined,
}: ReloadingFileOptions<T>): Promise<ReloadingFile<T>> {
  const look = (): Promise<Stats | null> => stat(file).catch(() => null);
  const read = async (): Promise<T> => parse(await readFile(file));
  // Before the read, so that a change during it is noticed.
  let seen = await look();
  let found = seen;
  let content: T;
  try {
    content = await read();
  } catch (error) {
    throw new Error(`${variable} ${file}: ${(error as Error).message}`);
  }

  const reload = async (): Promise<void> => {
    const before = found;
    found = await look();
    if (isSame(found, seen) || !isSame(found, before)) return;
    try {
      const next = await read();
      if (!isSame(await look(), found)) return;
      content = next;
      seen = found;
      onReload('reloaded');
      log.info({ provider, file }, `${variable}: changed file reloaded`);
    } catch (error) {
      if (!isSame(await look(), found)) return;
      seen = found;
      onReload('failed');
      log.error(
        { provider, file, error: (error as Error).message },
        `${variable}: changed file cannot be read; the last good version stays in use`,
      );
    }
  };
  let isReloading = false;
  const check = async (): Promise<void> => {
    if (isReloading) return;
    isReloading = true;
    await reload();
    isReloading = false;
  };
  const timer = setInterval(check, CHECK_MS).unref();
  return { current: () => content, close: () => clearInterval(timer) };
}

const isSame = (a: Stats | null, b: Stats | null): boolean =>
  a?.mtimeMs === b?.mtimeMs && a?.size === b?.size && a?.ino === b?.ino;

/** An MMDB file in memory. */
export interface Mmdb {
  /** `database_type` of its metadata. */
  readonly type: string;
  /** When it was built, milliseconds; null: unknown. */
  readonly builtAt: number | null;
  /** Returns the record of a canonical address; null if there is none. */
  find(ip: string): unknown;
  /** Returns up to `count` records from the beginning of its IPv4 space, or else of its IPv6 space. */
  sample(count: number): unknown[];
}

/** Blocks without a record that `sample` passes over. */
const MAX_STEPS = 10_000;
const SEPARATOR_BYTES = 16;
/** Names of fields in an error. */
const MAX_NAMES = 30;
const ZIP = Buffer.from('PK\x03\x04', 'latin1');
/** Begins the metadata of an MMDB file. */
const METADATA = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

/** Opens an MMDB file's content and reads a record. @throws Error that says what else it is, or that it is damaged */
export function openMmdb(content: Buffer): Mmdb {
  if (content.length === 0) throw new Error('the file is empty');
  if (content[0] === 0x1f && content[1] === 0x8b) throw new Error('the file is packed by gzip: unpack it');
  if (content.subarray(0, 4).equals(ZIP)) throw new Error('the file is a ZIP archive: unpack it');
  if (!content.includes(METADATA)) throw new Error('the file is not an MMDB database');
  const reader = unlessDamaged(() => new Reader<MmdbRecord>(content));
  const { databaseType, ipVersion, searchTreeSize, buildEpoch } = reader.metadata;
  if (typeof databaseType !== 'string' || ![4, 6].includes(ipVersion) || !(searchTreeSize > 0))
    throw new Error(DAMAGED);
  if (searchTreeSize + SEPARATOR_BYTES > content.length) throw new Error('the file is cut off');
  const builtAt = buildEpoch.getTime();
  const mmdb: Mmdb = {
    type: databaseType,
    builtAt: Number.isNaN(builtAt) ? null : builtAt,
    // A lookup of an IPv6 address in an IPv4 tree would read past its end.
    find: (ip) => (ip.includes(':') && ipVersion !== 6 ? null : unlessDamaged(() => reader.get(ip))),
    sample: (count) =>
      unlessDamaged(() => {
        const ipv4 = recordsFrom(reader, 32, count);
        return ipv4.length > 0 || ipVersion !== 6 ? ipv4 : recordsFrom(reader, 128, count);
      }),
  };
  mmdb.sample(1);
  return mmdb;
}

const DAMAGED = 'the file is damaged';

/** The library says of damaged data what it stumbled on, such as an unknown type or too deep a recursion. */
function unlessDamaged<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(DAMAGED, { cause: error });
  }
}

/** Says what a database holds, for the error that refuses it. `records`: of its `sample`. */
export function describeMmdb({ type }: Mmdb, records: readonly unknown[]): string {
  const names = [...new Set(records.flatMap((record) => fieldNames(record)))].sort();
  const shown = names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ', …' : '');
  return `is a database of the type '${type}' with the fields ${shown || '(none)'}`;
}

/** Steps from block to block, because the library has no iterator. */
function recordsFrom(reader: Reader<MmdbRecord>, bits: 32 | 128, count: number): unknown[] {
  const records: unknown[] = [];
  let at = 0n;
  for (let step = 0; step < MAX_STEPS && records.length < count && at < 1n << BigInt(bits); step += 1) {
    const [record, length] = reader.getWithPrefixLength(bits === 32 ? ipv4Of(at) : ipv6Of(at));
    if (record !== null) records.push(record);
    const size = 1n << BigInt(bits - Math.min(length, bits));
    at = (at / size + 1n) * size;
  }
  return records;
}

const ipv4Of = (at: bigint): string =>
  [24n, 16n, 8n, 0n].map((shift) => String((at >> shift) & 255n)).join('.');

const ipv6Of = (at: bigint): string =>
  Array.from({ length: 8 }, (_, group) => ((at >> BigInt(112 - 16 * group)) & 0xffffn).toString(16)).join(
    ':',
  );

/** Returns the names of a record's fields, nested ones as `traits.user_type`, sorted. */
export function fieldNames(record: unknown, prefix = ''): string[] {
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    return prefix === '' ? [] : [prefix];
  return Object.entries(record)
    .flatMap(([name, value]) => fieldNames(value, prefix === '' ? name : `${prefix}.${name}`))
    .sort();
}
