/** The formats of logs: each is told by its own look, and finds the visitor's address and the time in a line. */
import { BlockList, isIP } from 'node:net';
import { canonicalAddress } from '../canonical-address.ts';
import { parseCsvLine } from './csv.ts';

export const FORMATS = ['combined', 'json', 'alb', 'w3c', 'haproxy', 'csv', 'tsv'] as const;
export type FormatName = (typeof FORMATS)[number];

/** Which address of a line is the visitor's: that of the connection, or that of X-Forwarded-For. */
export type IpFrom = 'first' | 'last';

/** The formats whose lines have fields with names. */
export const FORMATS_WITH_FIELDS: readonly FormatName[] = ['json', 'w3c', 'csv', 'tsv'];

export interface FormatOptions {
  readonly format?: FormatName | undefined;
  /** A JSON path with dots, or the name of a column. */
  readonly field?: string | undefined;
  readonly ipFrom?: IpFrom | undefined;
}

export interface Visit {
  /** One spelling for each address. */
  readonly ip: string;
  /** Milliseconds since 1970, or null where the line has no time that can be read. */
  readonly at: number | null;
}

/** What a line is: a visit, a header or comment of the format, or a line without an address. */
export type Read = Visit | 'header' | null;

export interface Format {
  /** For people: what the log was taken for. */
  readonly name: string;
  read(line: string): Read;
}

const ADDRESS_FIELDS = [
  ...['ip', 'remote_addr', 'remote_ip', 'client_ip', 'clientip', 'remoteip', 'c-ip', 'clienthost'],
  ...['client', 'source_ip', 'ip_address', 'ip address', 'ipaddress', 'host'],
];
/** Caddy's come first: `client_ip` is the visitor behind its trusted proxies. */
const ADDRESS_PATHS = ['request.client_ip', 'request.remote_ip', ...ADDRESS_FIELDS];
const TIME_FIELDS = [
  ...['time_iso8601', '@timestamp', 'timestamp', 'startutc', 'time', 'ts', 'msec', 'datetime', 'date'],
  'time_local',
];

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

export const isLocal = (ip: string): boolean => local.check(ip, isIP(ip) === 4 ? 'ipv4' : 'ipv6');

/** Returns the address in `text`: bare, in brackets, with a port, or the first public one of a list. */
export const addressIn = (text: unknown): string | null => {
  if (typeof text !== 'string') return null;
  const all = text.split(',').flatMap((one) => oneAddress(one) ?? []);
  return all.find((ip) => !isLocal(ip)) ?? all[0] ?? null;
};

const oneAddress = (text: string): string | null => {
  const trimmed = text.trim().replace(/^"|"$/g, '');
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed)?.[1];
  const bare = bracketed ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
  const canonical = canonicalAddress(bare);
  return isIP(canonical) === 0 || canonical.includes('%') ? null : canonical;
};

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const BRACKETED_TIME =
  /\[?(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2})(?:\.\d+)?(?: ([+-]\d{2})(\d{2}))?\]?/;

/** Above each of these a number since 1970 is in milliseconds, microseconds and nanoseconds. */
const UNITS = [1e11, 1e14, 1e17];

/** Returns the time in a text of the usual forms, or since 1970 in any unit. A time without a zone is UTC. */
export const timeIn = (value: unknown): number | null => {
  if (typeof value === 'number' || (typeof value === 'string' && /^\d{9,19}(\.\d+)?$/.test(value))) {
    const number = Number(value);
    const ms = number * 1_000 ** (1 - UNITS.filter((limit) => number >= limit).length);
    return ms > 0 && ms < 1e14 ? Math.round(ms) : null;
  }
  if (typeof value !== 'string') return null;
  const log = BRACKETED_TIME.exec(value);
  const iso = log
    ? `${log[3]}-${String(MONTHS.indexOf(log[2] ?? '') + 1).padStart(2, '0')}-${log[1]}T${log[4]}${log[5] ? `${log[5]}:${log[6]}` : 'Z'}`
    : value.trim().replace(/^(\d{4}-\d{2}-\d{2})[ \t](\d)/, '$1T$2');
  if (!/^\d{4}-\d{2}-\d{2}/.test(iso)) return null;
  const ms = Date.parse(/T[\d:.]+$/.test(iso) ? `${iso}Z` : iso);
  return Number.isNaN(ms) ? null : ms;
};

const visit = (ip: string | null, time: unknown): Visit | null =>
  ip === null ? null : { ip, at: timeIn(time) };

/** Where the connection's address is not public, a proxy made it for the visitor that it names. */
const visitor = (first: string | null, last: string | null, ipFrom: IpFrom | undefined): string | null => {
  const isForwarded = ipFrom === 'last' || (ipFrom === undefined && (first === null || isLocal(first)));
  return (isForwarded ? last : null) ?? first;
};

/** An address with a port, as Apache writes a virtual host that has no name. */
const IP_HOST = /^(?:[\d.]+|\[[^\]]+\]):\d+$/;

/** Common, combined, with a virtual host before it, and nginx's with X-Forwarded-For at either end. */
const combined = (ipFrom: IpFrom | undefined): Format => ({
  name: 'common or combined (Apache, nginx)',
  read: (line) => {
    // A list of forwarded addresses may stand where the address does.
    const [one = '', two] = (line.split(' [', 1)[0] ?? '').split(/(?<!,)\s+/, 3);
    const [own, behind] = [addressIn(one), addressIn(two)];
    const first = IP_HOST.test(one) ? (behind ?? own) : (own ?? behind);
    const last = addressIn(/"([^"]*)"\s*$/.exec(line)?.[1]);
    return visit(visitor(first, last, ipFrom), line);
  },
});

const parsed = (line: string): Record<string, unknown> | null => {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
};

const lowered = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]));

/** Returns the value of a name, or at a path whose parts are separated by dots. */
const valueAt = (object: Record<string, unknown>, path: string): unknown => {
  if (path in object) return object[path];
  const [first = '', ...rest] = path.split('.');
  const inner = object[first];
  if (rest.length === 0 || typeof inner !== 'object' || inner === null) return undefined;
  return valueAt(inner as Record<string, unknown>, rest.join('.'));
};

/** Caddy writes each header as an array. */
const joined = (value: unknown): unknown =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string').join(',') : value;

const json = (field: string | undefined): Format => ({
  name: 'JSON lines',
  read: (line) => {
    const object = parsed(line);
    if (object === null) return null;
    const insensitive = lowered(object);
    const ip =
      field === undefined
        ? ADDRESS_PATHS.map((path) => addressIn(valueAt(insensitive, path))).find((one) => one !== null)
        : addressIn(joined(valueAt(object, field)));
    const time = TIME_FIELDS.map((name) => insensitive[name]).find((value) => timeIn(value) !== null);
    return visit(ip ?? null, time);
  },
});

const ALB = /^(?:https?|h2|wss?|grpcs?) (\S+) \S+ (\S+) /;
const alb: Format = {
  name: 'AWS Application Load Balancer',
  read: (line) => {
    const match = ALB.exec(line);
    return match ? visit(addressIn(match[2]), match[1]) : null;
  },
};

/** An address may be IPv6 without brackets: the port is what follows the last colon. */
const HAPROXY = /(?:^|\s)(\S+):\d+ (\[\d{2}\/[A-Z][a-z]{2}\/\d{4}:[\d:.]+(?: [+-]\d{4})?\])/;
const haproxy: Format = {
  name: 'HAProxy',
  read: (line) => {
    const match = HAPROXY.exec(line);
    return match ? visit(addressIn(match[1]), match[2]) : null;
  },
};

/** In a list, IIS writes a blank as +, CloudFront as %20. */
const unescaped = (text: string): string =>
  text
    .replaceAll('+', ' ')
    .replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** IIS and CloudFront: comments begin with #, and `#Fields:` names the columns, anew wherever it stands. */
const w3c = (field: string | undefined, ipFrom: IpFrom | undefined): Format => {
  let columns: string[] = [];
  return {
    name: 'W3C extended (IIS, CloudFront)',
    read: (line) => {
      if (line.startsWith('#')) {
        const fields = /^#Fields:(.*)$/i.exec(line)?.[1];
        if (fields !== undefined) columns = fields.trim().toLowerCase().split(/\s+/);
        return 'header';
      }
      const cells = line.includes('\t') ? line.split('\t') : line.split(' ');
      const cell = (name: string): string | undefined => cells[columns.indexOf(name)];
      const address = (name: string): string | null => addressIn(unescaped(cell(name) ?? ''));
      const forwarded = (): string | null => address('x-forwarded-for') ?? address('cs(x-forwarded-for)');
      const ip =
        field === undefined ? visitor(address('c-ip'), forwarded(), ipFrom) : address(field.toLowerCase());
      return visit(ip, `${cell('date') ?? ''} ${cell('time') ?? ''}`);
    },
  };
};

/** Chosen by the first line: where numbers are written with commas, spreadsheets separate cells with semicolons. */
const csvSplitter = (first: string): ((line: string) => string[]) => {
  const [byComma, bySemicolon] = [parseCsvLine(first), parseCsvLine(first, ';')];
  const isUsual = hasAddressColumn(byComma) || !hasAddressColumn(bySemicolon);
  const separator = bySemicolon.length > (isUsual ? byComma.length : 1) ? ';' : ',';
  return (line) => parseCsvLine(line, separator);
};

const hasName = (cells: readonly string[], wanted: readonly string[]): boolean =>
  cells.some((cell) => wanted.includes(cell.trim().toLowerCase()));

const hasAddressColumn = (cells: readonly string[]): boolean =>
  cells.length > 1 && (hasName(cells, ADDRESS_FIELDS) || cells.some((cell) => addressIn(cell) !== null));

/** With a header, or without one where a column of the first line holds an address. */
const separated = (kind: 'csv' | 'tsv', field: string | undefined): Format => {
  let columns: { readonly ip: number; readonly time: number } | null = null;
  let split = (line: string): string[] => line.split('\t');
  return {
    name: kind === 'csv' ? 'CSV' : 'TSV',
    read: (line) => {
      if (columns === null && kind === 'csv') split = csvSplitter(line);
      const cells = split(line);
      if (columns === null) {
        const names = cells.map((cell) => cell.trim().toLowerCase());
        const indexOf = (wanted: readonly string[]): number =>
          wanted.map((name) => names.indexOf(name)).find((index) => index >= 0) ?? -1;
        const ip = indexOf(field === undefined ? ADDRESS_FIELDS : [field.toLowerCase()]);
        if (ip < 0 && field !== undefined) throw new Error(`the first line has no column ${field}`);
        const found = cells.findIndex((cell) => addressIn(cell) !== null);
        columns = { ip: ip >= 0 ? ip : Math.max(0, found), time: ip >= 0 ? indexOf(TIME_FIELDS) : -1 };
        if (ip >= 0) return 'header';
      }
      return visit(addressIn(cells[columns.ip]), cells[columns.time]);
    },
  };
};

/** Makes a format by its name. */
export const formatOf = (name: FormatName, { field, ipFrom }: FormatOptions = {}): Format => {
  switch (name) {
    case 'combined':
      return combined(ipFrom);
    case 'json':
      return json(field);
    case 'alb':
      return alb;
    case 'w3c':
      return w3c(field, ipFrom);
    case 'haproxy':
      return haproxy;
    case 'csv':
      return separated('csv', field);
    case 'tsv':
      return separated('tsv', field);
  }
};

/** Tells a format by the first lines of a log. @param sample lines that are not empty @param field of the options */
export const detectFormat = (sample: readonly string[], field?: string): FormatName => {
  const [first = ''] = sample;
  const [byTab, asCsv] = [first.split('\t'), csvSplitter(first)(first)];
  const most = (is: (line: string) => boolean): boolean => sample.filter(is).length * 2 > sample.length;
  const wanted = field === undefined ? [] : [field.toLowerCase()];
  if (byTab.length > 1 && hasName(byTab, wanted)) return 'tsv';
  if (hasName(asCsv, wanted)) return 'csv';
  if (sample.some((line) => /^#Fields:/i.test(line))) return 'w3c';
  if (most((line) => line.startsWith('{') && parsed(line) !== null)) return 'json';
  if (most((line) => ALB.test(line))) return 'alb';
  if (most((line) => HAPROXY.test(line))) return 'haproxy';
  if (!first.includes('[') && hasAddressColumn(byTab)) return 'tsv';
  const isList = /^\S+(?:, \S+)+ /.test(first);
  if (!isList && !first.includes('[') && hasAddressColumn(asCsv)) return 'csv';
  return asCsv.length === 1 && hasName(asCsv, ADDRESS_FIELDS) ? 'csv' : 'combined';
};
