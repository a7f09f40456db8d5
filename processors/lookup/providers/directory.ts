import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';
import { parseAddress } from '../../../domain/kernel/address.ts';
import type { ProviderRecord } from '../../../domain/lookup/answers.ts';
import { nextTurn } from '../../../platform/clock/waiting.ts';
import { fieldNames, openMmdb, openReloadingFile } from '../../../platform/data-file.ts';
import { withoutMark } from '../../../platform/text-file.ts';
import { type Provider, parseProviderRecord } from './provider.ts';

/** Finds the record of the longest matching prefix. */
interface Directory {
  find(ip: string): ProviderRecord | null;
}

type Family = 'ipv4' | 'ipv6';

/** Returns the address's first `bits` bits as a map key. */
function prefixKey(bytes: readonly number[], bits: number): string {
  const whole = bits >> 3;
  const kept = bytes.slice(0, whole);
  const rest = bits & 7;
  if (rest > 0) kept.push((bytes[whole] ?? 0) & (0xff << (8 - rest)));
  return String.fromCharCode(...kept);
}

function parseBlock(cidr: string): { family: Family; bytes: number[]; bits: number } {
  const [text = '', length = ''] = cidr.split('/');
  const address = parseAddress(text);
  const bits = /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (address === null || !(bits <= (address.kind() === 'ipv4' ? 32 : 128))) {
    throw new Error(`'${cidr}' is no CIDR block`);
  }
  return { family: address.kind(), bytes: address.toByteArray(), bits };
}

type Blocks = Record<Family, Map<number, Map<string, ProviderRecord>>>;

function addBlock(byLength: Blocks, line: string): void {
  const { cidr, ...record } = JSON.parse(line) as { cidr: unknown };
  const { family, bytes, bits } = parseBlock(String(cidr));
  const blocks = byLength[family].get(bits) ?? new Map<string, ProviderRecord>();
  blocks.set(prefixKey(bytes, bits), parseProviderRecord(record));
  byLength[family].set(bits, blocks);
}

const NEWLINE = 10;

/** Yields the lines. A large file is longer than a text may be. */
function* linesOf(content: Buffer): Generator<string> {
  for (let from = 0; from < content.length; ) {
    const found = content.indexOf(NEWLINE, from);
    const to = found === -1 ? content.length : found;
    yield content.toString('utf8', from, to);
    from = to + 1;
  }
}

/** Each takes some 15 microseconds. */
const LINES_IN_A_TURN = 100;

/**
 * Parses JSON Lines of `{cidr, match_type, network, company, fresh_for_days}`, and leaves the turns of the event loop to the requests
 * that come meanwhile: half a million lines take seconds.
 * @throws Error that names the first wrong line
 */
export async function parseDirectory(file: Buffer): Promise<Directory> {
  const content = withoutMark(file);
  const byLength: Blocks = { ipv4: new Map(), ipv6: new Map() };
  let number = 0;
  for (const line of linesOf(content)) {
    number += 1;
    if (number % LINES_IN_A_TURN === 0) await nextTurn();
    if (line.trim() === '') continue;
    try {
      addBlock(byLength, line);
    } catch (error) {
      throw new Error(`line ${number}: ${(error as Error).message}`);
    }
  }
  const longestFirst = (family: Family) => [...byLength[family]].sort(([a], [b]) => b - a);
  const ordered: Record<Family, [number, Map<string, ProviderRecord>][]> = {
    ipv4: longestFirst('ipv4'),
    ipv6: longestFirst('ipv6'),
  };
  return {
    find: (ip) => {
      const address = ipaddr.parse(ip);
      const bytes = address.toByteArray();
      for (const [bits, blocks] of ordered[address.kind()]) {
        const record = blocks.get(prefixKey(bytes, bits));
        if (record) return record;
      }
      return null;
    },
  };
}

const VARIABLE = 'ENRICHMENT_DIRECTORY';

function parseFile(file: string, content: Buffer): Directory | Promise<Directory> {
  if (!file.endsWith('.mmdb')) return parseDirectory(content);
  const { type, find, sample } = openMmdb(content);
  const [first] = sample(1);
  if (first !== undefined && !fieldNames(first).includes('match_type')) {
    throw new Error(
      `is a database of the type '${type}', whose records have no match_type: for a vendor's database, ` +
        'ENRICHMENT_PROVIDERS takes a name of your choice, and NAME_FILE the file (docs/providers.md)',
    );
  }
  return {
    find: (ip) => {
      const record = find(ip);
      return record === null ? null : parseProviderRecord(record);
    },
  };
}

/**
 * Creates a provider from the operator's file of address blocks, JSON Lines or MMDB (by the ending `.mmdb`), which is
 * read again when it changes.
 * @throws Error that names the file and the fault, at startup only
 */
export async function createDirectoryProvider(
  file: string,
  log: Logger,
  onReload?: (outcome: 'reloaded' | 'failed') => void,
): Promise<Provider & { close(): void }> {
  const directory = await openReloadingFile({
    file,
    parse: (content) => parseFile(file, content),
    log,
    provider: 'directory',
    variable: VARIABLE,
    onReload,
  });
  return {
    name: 'directory',
    lookup: async (ip, _signal, { onRaw } = {}) => {
      const record = directory.current().find(ip);
      onRaw?.(record);
      return record;
    },
    close: directory.close,
  };
}
