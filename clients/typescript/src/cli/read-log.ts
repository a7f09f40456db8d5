/** The addresses of a log, with how many of its lines have each. */
import { createReadStream } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { canonicalAddress } from '../canonical-address.ts';
import { parseCsvLine } from './csv.ts';

export type LogFormat = 'combined' | 'json' | 'csv';

export interface LogAddresses {
  readonly lines: number;
  /** Lines without an address. */
  readonly without: number;
  /** Lines by public address. */
  readonly requests: ReadonlyMap<string, number>;
  /** Lines whose address is not public. */
  readonly notPublic: number;
}

const USUAL_FIELDS = ['ip', 'remote_addr', 'client_ip', 'clientip', 'remote_ip', 'remoteip', 'c-ip', 'host'];

const local = new BlockList();
for (const [network, bits] of [
  ['10.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['0.0.0.0', 8],
] as const)
  local.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of [
  ['fc00::', 7],
  ['fe80::', 10],
  ['::', 127],
] as const)
  local.addSubnet(network, bits, 'ipv6');

/**
 * @param path `-` is the standard input; a name that ends in `.gz` is unpacked
 * @param field of JSON objects or CSV headers; by default the first of the usual names
 */
export const readLog = async (
  path: string,
  format: LogFormat,
  field: string | undefined,
): Promise<LogAddresses> => {
  const requests = new Map<string, number>();
  let [lines, without, notPublic] = [0, 0, 0];
  const addressIn = reader(format, field);
  for await (const line of createInterface({ input: open(path), crlfDelay: Infinity })) {
    if (line.trim() === '') continue;
    const found = addressIn(line);
    if (found === 'header') continue;
    lines += 1;
    if (found === null) without += 1;
    else if (isLocal(found)) notPublic += 1;
    else requests.set(found, (requests.get(found) ?? 0) + 1);
  }
  return { lines, without, requests, notPublic };
};

const open = (path: string): Readable => {
  if (path === '-') return process.stdin;
  const file = createReadStream(path);
  return path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
};

const isLocal = (ip: string): boolean => local.check(ip, isIP(ip) === 4 ? 'ipv4' : 'ipv6');

const asAddress = (text: unknown): string | null => {
  if (typeof text !== 'string') return null;
  // A list of forwarded addresses has the visitor's first.
  const canonical = canonicalAddress(text.split(',')[0] ?? '');
  return isIP(canonical) === 0 ? null : canonical;
};

const reader = (
  format: LogFormat,
  field: string | undefined,
): ((line: string) => string | null | 'header') => {
  if (format === 'json') return (line) => inJson(line, field);
  if (format === 'csv') return csvReader(field);
  // A virtual host's name may come first.
  return (line) => {
    const words = line.split(' ', 3);
    return asAddress(words[0]) ?? asAddress(words[1]);
  };
};

const inJson = (line: string, field: string | undefined): string | null => {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null) return null;
    const fields = value as Record<string, unknown>;
    const names = field === undefined ? USUAL_FIELDS : [field];
    return names.map((name) => asAddress(fields[name])).find((ip) => ip !== null) ?? null;
  } catch {
    return null;
  }
};

const csvReader = (field: string | undefined): ((line: string) => string | null | 'header') => {
  let column: number | null = null;
  return (line) => {
    const cells = parseCsvLine(line);
    if (column !== null) return asAddress(cells[column]);
    const names = field === undefined ? USUAL_FIELDS : [field.toLowerCase()];
    column = cells.findIndex((cell) => names.includes(cell.trim().toLowerCase()));
    if (column >= 0) return 'header';
    if (field !== undefined) throw new Error(`the first line has no column ${field}`);
    column = Math.max(
      0,
      cells.findIndex((cell) => asAddress(cell) !== null),
    );
    return asAddress(cells[column]);
  };
};
