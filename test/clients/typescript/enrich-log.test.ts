import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { openCompaniesFile } from '../../../clients/typescript/src/cli/companies-file.ts';
import { csvLine, parseCsvLine } from '../../../clients/typescript/src/cli/csv.ts';
import { type EnrichOptions, enrich } from '../../../clients/typescript/src/cli/enrich.ts';
import {
  detectFormat,
  type FormatOptions,
  isLocal,
  timeIn,
} from '../../../clients/typescript/src/cli/formats.ts';
import { progressText } from '../../../clients/typescript/src/cli/progress.ts';
import { logPaths, openLog } from '../../../clients/typescript/src/cli/read-log.ts';
import {
  type ClientOptions,
  createClient,
  type LookedUp,
  type Time,
} from '../../../clients/typescript/src/index.ts';
import { json, startAnsweringServer } from '../../support/answering-server.ts';
import { eventually } from '../../support/eventually.ts';
import { answer, refused } from './fakes.ts';

const PROGRAM = fileURLToPath(new URL('../../../clients/typescript/src/cli.ts', import.meta.url));
const LOGS = fileURLToPath(new URL('../logs/', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'doorplate-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const file = (content: string | Buffer, name = ''): string => {
  files += 1;
  const path = join(folder, `${files}${name}`);
  writeFileSync(path, content);
  return path;
};

const linkTo = (target: string): string => {
  symlinkSync(target, `${target}.link`);
  return `${target}.link`;
};

const counted = async (path: string, options: FormatOptions = {}) => {
  const { format, lines } = await openLog(path, options);
  const requests: Record<string, number> = {};
  let [without, times] = [0, 0];
  for await (const { read } of lines) {
    if (read === 'header') continue;
    if (read === null) without += 1;
    else {
      requests[read.ip] = (requests[read.ip] ?? 0) + 1;
      if (read.at !== null && new Date(read.at).toISOString().startsWith('2026-11-27T16:1')) times += 1;
    }
  }
  return { format: format.name, requests, without, times };
};
const addressesOf = async (content: string | Buffer, options: FormatOptions = {}) =>
  (await counted(file(content), options)).requests;

const EXPECTED: Record<string, { format: string; without: number; times: number }> = JSON.parse(
  readFileSync(join(LOGS, 'expected.json'), 'utf8'),
);

/** A clock that needs no time: `atMs` is called whenever a sleep has ended. */
const quickTime = (atMs: (ms: number) => void = () => undefined): Time => {
  let now = 0;
  const sleep = async (ms: number) => {
    now += ms;
    await new Promise(setImmediate);
    atMs(now);
  };
  return { now: () => now, sleep };
};

/** Follows a file until it has given so many addresses. */
const followed = async (path: string, count: number, atMs?: (ms: number) => void): Promise<string[]> => {
  const stop = new AbortController();
  const found: string[] = [];
  const { lines } = await openLog(path, {}, { signal: stop.signal, time: quickTime(atMs) });
  for await (const { read } of lines) {
    if (read !== null && read !== 'header') found.push(read.ip);
    if (found.length === count) stop.abort();
  }
  return found;
};

describe('a growing log', () => {
  it.each([
    ['IIS', '#Software: IIS\n', '#Fields: date c-ip\n2026-11-27 9.1.1.1\n'],
    ['CloudFront', '#Version: 1.0\n', '#Fields: date\tc-ip\n2026-11-27\t9.1.1.1\n'],
    ['JSON behind a banner', 'Started.\n', '{"ip":"9.1.1.1"}\n{}\n'],
  ])('of %s is told as soon as a line has an address', async (_what, begin, more) => {
    const path = file(begin);
    const found = followed(path, 1, (ms) => {
      if (ms === 1_000) appendFileSync(path, more);
    });
    expect(await found).toEqual(['9.1.1.1']);
  });

  it('that is renamed is read until its writer has been quiet for five seconds, then the new one is', async () => {
    const path = file('9.1.1.1 - -\n', '.log');
    const found = followed(path, 4, (ms) => {
      if (ms === 500) {
        renameSync(path, `${path}.1`);
        writeFileSync(path, '9.1.1.4 - -\n');
      }
      if (ms === 5_000) appendFileSync(`${path}.1`, '9.1.1.2 - -\n');
      if (ms === 9_500) appendFileSync(`${path}.1`, '9.1.1.3 - -\n');
    });
    expect(await found).toEqual(['9.1.1.1', '9.1.1.2', '9.1.1.3', '9.1.1.4']);
  });

  it('that is truncated is read from its start again', async () => {
    const path = file('9.1.1.1 - - [27/Nov/2026:10:00:00 +0000]\n');
    const found = followed(path, 2, (ms) => {
      if (ms === 500) writeFileSync(path, '9.1.1.2 - -\n');
    });
    expect(await found).toEqual(['9.1.1.1', '9.1.1.2']);
  });
});

describe('a log', () => {
  it.each(Object.entries(EXPECTED))(
    '%s is told by its look, and read',
    async (name, { format, ...expected }) => {
      const bytes = readFileSync(join(LOGS, name));
      const text = new TextDecoder(name.startsWith('utf16') ? 'utf-16' : 'utf-8').decode(bytes);
      expect(detectFormat(text.split(/\r?\n/).filter(Boolean).slice(0, 50))).toBe(format);
      const { requests, without, times } = await counted(join(LOGS, name));
      expect(requests).toEqual({
        '8.8.8.8': 3,
        '9.20.1.1': 3,
        '2001:4860:4860::8888': 3,
        '10.0.0.7': 3,
        '9.20.1.2': 3,
      });
      expect({ without, times }).toEqual(expected);
    },
  );

  it.each([
    ['CSV with semicolons', 'Zeit;IP;Betrag\n2026-11-27T10:00:00Z;9.1.1.1;1,5\n;"9.1.1.2";2\n'],
    ['CSV with semicolons and no header', '9.1.1.1;a,b\n9.1.1.2;c\n'],
    ['an array of JSON on one line', '[{"ip":"9.1.1.1","a":"}],\\"["},{"ip":"9.1.1.2","b":[1,{}]}]'],
    ['an array of JSON, an object a line', '[\n{"ip":"9.1.1.1"},\n{"ip":"9.1.1.2"}\n]\n'],
    [
      'an indented array of JSON',
      JSON.stringify([{ remote_addr: '9.1.1.1', more: { x: [1] } }, { remote_addr: '9.1.1.2' }], null, 2),
    ],
    ['an array of addresses', '["9.1.1.1", "\\x", "9.1.1.2"]'],
  ])('that is %s is told by its look', async (_, log) => {
    expect(await addressesOf(log)).toEqual({ '9.1.1.1': 1, '9.1.1.2': 1 });
  });

  it('has the address of X-Forwarded-For where its own is not public, or as asked', async () => {
    const line = (own: string, forwarded: string) =>
      `${own} - - [27/Nov/2026:16:18:16 +0000] "GET / HTTP/1.1" 200 2 "-" "curl" "${forwarded}"\n`;
    const log = `${line('10.0.0.1', '9.1.1.1, 10.0.0.2')}${line('9.1.1.2', '9.9.9.9')}${line('9.1.1.3', '-')}`;
    expect(await addressesOf(log)).toEqual({ '9.1.1.1': 1, '9.1.1.2': 1, '9.1.1.3': 1 });
    expect(await addressesOf(log, { ipFrom: 'last' })).toEqual({ '9.1.1.1': 1, '9.9.9.9': 1, '9.1.1.3': 1 });
    expect(await addressesOf(log, { ipFrom: 'first' })).toEqual({
      '10.0.0.1': 1,
      '9.1.1.2': 1,
      '9.1.1.3': 1,
    });
  });

  it.each(['X-Forwarded-For', 'cs(X-Forwarded-For)'])(
    'has the address of the W3C column %s alike',
    async (column) => {
      const log = `#Fields: date c-ip ${column}\nx 10.0.0.1 10.0.0.2,%209.1.1.1\nx 9.1.1.2 9.9.9.9\nx 9.1.1.3 -\n`;
      expect(await addressesOf(log)).toEqual({ '9.1.1.1': 1, '9.1.1.2': 1, '9.1.1.3': 1 });
      expect(await addressesOf(log, { ipFrom: 'last' })).toEqual({
        '9.1.1.1': 1,
        '9.9.9.9': 1,
        '9.1.1.3': 1,
      });
      expect(await addressesOf(log, { ipFrom: 'first' })).toEqual({
        '10.0.0.1': 1,
        '9.1.1.2': 1,
        '9.1.1.3': 1,
      });
      expect(await addressesOf(log, { field: column })).toEqual({ '9.1.1.1': 1, '9.9.9.9': 1 });
    },
  );

  it('has the visitor behind a virtual host that is an address itself', async () => {
    const request = '- - [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 12';
    const log = `5.6.7.8:443 9.1.1.1 ${request}\n[2a00::1]:443 2a00::2 ${request}\n9.1.1.2:5000 ${request}\n`;
    expect(await addressesOf(log)).toEqual({ '9.1.1.1': 1, '2a00::2': 1, '9.1.1.2': 1 });
  });

  it('has the address at any path of JSON objects, and in any column', async () => {
    const nested = '{"a":{"b":{"c":"9.1.1.1"}},"ip":"9.9.9.9"}\n{"a.b":{"c":"[2a00::1]:443"}}\nnull\n{\n';
    expect(await addressesOf(nested, { field: 'a.b.c', format: 'json' })).toEqual({ '9.1.1.1': 1 });
    expect(await addressesOf('time,visitor\n1,9.1.1.1:80\n', { field: 'Visitor', format: 'csv' })).toEqual({
      '9.1.1.1': 1,
    });
    expect(await addressesOf('"a,b",9.1.1.1\n"c",9.1.1.2\n')).toEqual({ '9.1.1.1': 1, '9.1.1.2': 1 });
    const caddy = '{"request":{"headers":{"X-Forwarded-For":["10.0.0.1, 9.1.1.1",7]}}}\n';
    const field = 'request.headers.X-Forwarded-For';
    expect(await addressesOf(caddy, { field })).toEqual({ '9.1.1.1': 1 });
    await expect(addressesOf('time,ip\n', { format: 'csv', field: 'visitor' })).rejects.toThrow('visitor');
  });

  it('is CSV or TSV where its header names the field, and no field is looked for where lines have none', async () => {
    expect(await addressesOf('time,visitor\n1,9.1.1.1\n', { field: 'Visitor' })).toEqual({ '9.1.1.1': 1 });
    expect(await addressesOf('proxy\tvisitor\n9.9.9.9\t9.1.1.1\n', { field: 'visitor' })).toEqual({
      '9.1.1.1': 1,
    });
    expect(await addressesOf('visitor\n9.1.1.1\n', { field: 'visitor' })).toEqual({ '9.1.1.1': 1 });
    for (const name of ['ip_address', 'IP Address', 'IPaddress'])
      expect(await addressesOf(`proxy,${name}\n9.9.9.9,9.1.1.1\n`)).toEqual({ '9.1.1.1': 1 });
    await expect(addressesOf('9.1.1.1 - -\n', { field: 'visitor' })).rejects.toThrow(
      '--field is for json, w3c, csv, tsv alone, and the log is read as combined',
    );
  });

  it('may be packed, by gzip in several members or by zstd, whatever its name', async () => {
    const members = Buffer.concat([gzipSync('9.1.1.1 - -\n'), gzipSync('9.1.1.2 - -\n')]);
    expect(await addressesOf(members)).toEqual({ '9.1.1.1': 1, '9.1.1.2': 1 });
    expect(await addressesOf(zstdCompressSync('9.1.1.1 - -\n'))).toEqual({ '9.1.1.1': 1 });
  });

  it.each([
    ['is missing', () => join(folder, 'none.gz'), 'there is no such file'],
    ['ends too early', () => file(gzipSync('9.1.1.1 - -\n'.repeat(99)).subarray(0, 30)), 'ends too early'],
    ['is a folder without a file', () => mkdtempSync(join(folder, 'x.gz')), 'a folder without a file'],
  ])('that %s is one line', async (_how, path, message) => {
    const reading = async () => {
      for (const one of await logPaths([path()])) await counted(one);
    };
    const error = await reading().catch((cause: Error) => cause);
    expect(String(error)).toContain(message);
    expect(String(error)).not.toContain('\n');
  });

  it('may be all files of a folder, those of the run itself and links to nothing left out', async () => {
    expect(await logPaths([LOGS])).toContain(join(LOGS, 'haproxy.log'));
    const logs = mkdtempSync(join(folder, 'logs-'));
    for (const name of ['a.log', 'out.csv', 'out.csv.part']) writeFileSync(join(logs, name), '');
    symlinkSync(join(logs, 'none'), join(logs, 'b.log'));
    symlinkSync(logs, join(folder, 'by-link'));
    const ours = ['out.csv', 'out.csv.part', 'out.csv.new'].map((name) => join(folder, 'by-link', name));
    expect(await logPaths([logs], ours)).toEqual([join(logs, 'a.log')]);
  });

  it('has times with a zone, in UTC without one, or as numbers', () => {
    const at = Date.parse('2026-11-27T16:18:16Z');
    const same = [
      ...['x [27/Nov/2026:17:18:16 +0100] y', '2026-11-27 16:18:16', '2026-11-27T17:18:16+01:00', at / 1_000],
      ...[at, at * 1e3, at * 1e6, String(at / 1_000)],
    ];
    expect(same.map(timeIn)).toEqual(same.map(() => at));
    expect(['yesterday', '', null, '2026-13-45'].map(timeIn)).toEqual([null, null, null, null]);
  });
});

it('knows which addresses are not public', () => {
  expect(['10.1.2.3', '::1', 'fd00::1', '9.1.1.1', '2a00::1'].map(isLocal)).toEqual([
    ...[true, true, true],
    ...[false, false],
  ]);
});

/** A service whose answers a test gives by address; usage with the given limit of new addresses. */
const service = (reply: (ip: string) => Response, daily: number | null = null) => {
  const asked: string[] = [];
  const fetch = async (url: string, { body }: RequestInit): Promise<Response> => {
    if (url.includes('/v1/usage')) {
      const limits = { requests_per_second: 50, new_enrichments_per_day: daily, pending_enrichments: 9 };
      return answer(200, { limits, outcomes: { enqueued: 2 } });
    }
    const { ip } = JSON.parse(String(body)) as { ip: string };
    asked.push(ip);
    return reply(ip);
  };
  const options = {
    baseUrl: 'https://doorplate.example',
    apiKey: 'k',
    fetch: fetch as ClientOptions['fetch'],
  };
  return { client: createClient(options), asked };
};
const found = (ip: string): Response =>
  answer(200, {
    ...{ ip, status: 'complete', refresh_status: 'not_needed', match_type: 'company', company_found: true },
    ...{ company: { name: `of ${ip}` }, network: { is_isp: false }, stale: false, enriched_at: null },
  });

let said = '';
const run = async (options: Partial<EnrichOptions> & Pick<EnrichOptions, 'client' | 'logs' | 'out'>) => {
  said = '';
  const terminal = {
    write: (text: string) => {
      said += text;
    },
  };
  const stop = new AbortController();
  const code = await enrich({ signal: stop.signal, terminal, ...options });
  return { code, said };
};
const rowsOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(1, -1)
    .map((line) => parseCsvLine(line));

describe('enrich', () => {
  const log = file('9.1.1.1 - - [27/Nov/2026:16:18:16 +0000]\n9.1.1.2 - -\n9.1.1.1 - -\n10.0.0.1 - -\nx\n');

  it('writes beside the file, and gives it its name with counts and a summary by company', async () => {
    const [out, summary] = [join(folder, 'whole.csv'), join(folder, 'summary.csv')];
    const { client, asked } = service(found);
    const { code, said } = await run({ client, logs: [log], out, summary, verbose: true });
    expect(code).toBe(0);
    expect(rowsOf(out).map((row) => row.slice(0, 5))).toEqual([
      ['9.1.1.1', '2', 'company', 'true', 'of 9.1.1.1'],
      ['9.1.1.2', '1', 'company', 'true', 'of 9.1.1.2'],
    ]);
    expect(existsSync(`${out}.part`)).toBe(false);
    expect(readFileSync(summary, 'utf8')).toBe(
      'name,website,visits,addresses,first,last\n' +
        'of 9.1.1.1,,2,1,2026-11-27T16:18:16.000Z,2026-11-27T16:18:16.000Z\nof 9.1.1.2,,1,1,,\n',
    );
    expect(said).toContain('common or combined');
    expect(said).toContain('no address: x\n');
    expect(said).toContain('2 addresses, 0 finished before, 2 to look up; the key has no daily limit');

    appendFileSync(log, '9.1.1.3 - -\n');
    await run({ client, logs: [log], out });
    expect(asked).toEqual(['9.1.1.1', '9.1.1.2', '9.1.1.3']);
    expect(rowsOf(out)).toHaveLength(3);
  });

  it('reads no file of its own in a folder of logs', async () => {
    const logs = mkdtempSync(join(folder, 'own-'));
    const [out, summary] = [join(logs, 'out.csv'), join(logs, 'summary.csv')];
    writeFileSync(join(logs, 'a.log'), '9.1.1.1 - -\n');
    const { client, asked } = service(found);
    for (let runs = 0; runs < 2; runs += 1) {
      const { said } = await run({ client, logs: [logs], out, summary });
      expect(said).toContain('1 lines, 1 addresses');
    }
    expect(asked).toEqual(['9.1.1.1']);
  });

  it.each([
    ['holds something else', (_out: string) => file('mine\n'), 'is not a file of this command'],
    ['is the file of results', (out: string) => out, 'is a log or a file of the results'],
    ['stands beside it', (out: string) => `${out}.part`, 'is a log or a file of the results'],
    ['is the log', () => log, 'is a log or a file of the results'],
    ['is a link to the log', () => linkTo(log), 'is a log or a file of the results'],
    ['is in no folder', () => join(folder, 'none', 'x.csv'), 'there is no folder'],
    ['is a folder', () => folder, 'it is a folder'],
  ])('asks for nothing where the summary %s', async (_what, summaryFor, message) => {
    const out = join(folder, `summary-${files}.csv`);
    const summary = summaryFor(out);
    const before = existsSync(summary) && summary !== folder ? readFileSync(summary, 'utf8') : null;
    const { client, asked } = service(found);
    await expect(run({ client, logs: [log], out, summary })).rejects.toThrow(message);
    expect(asked).toEqual([]);
    if (before !== null) expect(readFileSync(summary, 'utf8')).toBe(before);
  });

  it('replaces a summary of its own, and with --force any other file that it does not read', async () => {
    const [out, summary] = [join(folder, 'forced.csv'), file('mine\n')];
    const { client } = service(found);
    await run({ client, logs: [log], out, summary, force: true });
    const first = readFileSync(summary, 'utf8');
    expect(first).toMatch(/^name,website,visits/);
    await run({ client, logs: [log], out, summary });
    expect(readFileSync(summary, 'utf8')).toBe(first);
    const forced = run({ client, logs: [folder], out, summary: log, force: true });
    await expect(forced).rejects.toThrow('is a log or a file of the results');
  });

  it('says what it would ask for and spends nothing with --dry-run', async () => {
    const { client, asked } = service(found, 3);
    const out = join(folder, 'dry.csv');
    const { said } = await run({ client, logs: [log], out, dryRun: true });
    expect(said).toMatch(
      /3 to look up; the key takes 1 of 3 new addresses today; at least 1 s .*, or 1 more days/,
    );
    expect([asked, existsSync(out), existsSync(`${out}.part`)]).toEqual([[], false, false]);
    const usedUp = await run({ client: service(found, 2).client, logs: [log], out, dryRun: true });
    expect(usedUp.said).toMatch(
      /the key's 2 new addresses of today are used up; at least .*, or 2 more days if all are new\n/,
    );
  });

  it('can be stopped while it reads', async () => {
    const { client, asked } = service(found);
    const [out, stop] = [join(folder, 'unread.csv'), new AbortController()];
    const terminal = { write: () => stop.abort() };
    expect(await run({ client, logs: [log], out, terminal, signal: stop.signal })).toMatchObject({
      code: 130,
    });
    expect([asked, existsSync(`${out}.part`)]).toEqual([[], false]);
  });

  it.each([
    ['the key', () => refused(401, 'unauthorized')],
    ['the path', () => answer(404, '<html>')],
  ])('ends at a refusal of %s and writes no line for it', async (_what, reply) => {
    const out = join(folder, `refused-${files}.csv`);
    const refusing = { client: service(reply).client, logs: [file('9.1.1.1\n')], out };
    await expect(run(refusing)).rejects.toThrow();
    expect(said).toMatch(/0 failed\n$/);
    expect(rowsOf(`${out}.part`)).toEqual([]);
    await run({ client: service(found).client, logs: [file('9.1.1.1\n')], out });
    expect(rowsOf(out)).toHaveLength(1);
  });

  it('waits for no midnight with a key that takes no new address, and tries what it refused again', async () => {
    const out = join(folder, 'none-new.csv');
    const { client } = service(
      (ip) => (ip === '9.1.1.2' ? refused(429, 'enrichment_limit', 40_000) : found(ip)),
      0,
    );
    const { code, said } = await run({ client, logs: [log], out });
    expect(code).toBe(1);
    expect(said).toContain('at least 1 s if all are saved, and new ones fail\n');
    expect(said).toMatch(/\n1 address failed: the same command tries it again\n$/);
    expect(rowsOf(out).map(([ip, , , , , , , , , , , , , error]) => [ip, error])).toContainEqual([
      ...['9.1.1.2', 'enrichment_limit'],
    ]);
    const { client: later, asked } = service(found);
    await run({ client: later, logs: [log], out });
    expect(asked).toEqual(['9.1.1.2']);
    expect(rowsOf(out)).toHaveLength(3);
  });

  it('follows no file that is not there, and leaves the results as they are', async () => {
    const out = join(folder, 'none.csv');
    await run({ client: service(found).client, logs: [log], out });
    const before = readFileSync(out, 'utf8');
    writeFileSync(`${out}.part`, before);
    const missing = { logs: [join(folder, 'none.log')], out, follow: true };
    await expect(run({ client: service(found).client, ...missing })).rejects.toThrow('there is no such file');
    expect([out, `${out}.part`].map((path) => readFileSync(path, 'utf8'))).toEqual([before, before]);
  });

  it('ends with what was tried where no line has an address', async () => {
    const { client } = service(found);
    const out = join(folder, 'nothing.csv');
    await expect(run({ client, logs: [file('{"a":1}\n')], out })).rejects.toThrow(
      /no line has an address when it is read as JSON lines .*it begins: {"a":1}/,
    );
    await expect(run({ client, logs: [file('')], out })).rejects.toThrow('is empty');
  });

  it('goes on with a growing file, writes to the file directly, and counts and sums up at its end', async () => {
    const growing = file('9.1.1.1 - -\n', '.log');
    const [out, summary] = [join(folder, 'followed.csv'), join(folder, 'followed-summary.csv')];
    const stop = new AbortController();
    const rows = () => (existsSync(out) ? rowsOf(out).map(([ip]) => ip) : []);
    const written = (count: number) => eventually(`${count} rows`, rows, (all) => all.length === count);
    const running = run({
      client: service(found).client,
      logs: [growing],
      out,
      summary,
      follow: true,
      signal: stop.signal,
    });
    await written(1);
    appendFileSync(growing, '9.1.1.2 - -\n9.1.1.1 - -\n');
    await written(2);
    appendFileSync(growing, '9.1.1.1 - -\n9.1.1.3 - -\n');
    await written(3);
    stop.abort();
    expect((await running).code).toBe(0);
    expect(rowsOf(out).map((row) => row.slice(0, 2))).toEqual([
      ['9.1.1.1', '3'],
      ['9.1.1.2', '1'],
      ['9.1.1.3', '1'],
    ]);
    expect(readFileSync(summary, 'utf8')).toContain('\nof 9.1.1.1,,3,1,,\n');
  });
});

describe('the command with a standard input that stays open', () => {
  /** Starts it, with a service that answers each lookup so. */
  const start = async (name: string, lookup: (response: ServerResponse) => void) => {
    const server = await startAnsweringServer();
    onTestFinished(() => server.close());
    const limits = { requests_per_second: 50, new_enrichments_per_day: null, pending_enrichments: 9 };
    server.answers((response) =>
      server.asked.at(-1)?.path?.startsWith('/v1/usage')
        ? json(200, { limits, outcomes: {} })(response)
        : lookup(response),
    );
    const env = { PATH: process.env.PATH, DOORPLATE_URL: server.base, DOORPLATE_API_KEY: 'k' };
    const out = join(folder, name);
    const args = [PROGRAM, 'enrich', '-', '--out', out];
    const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'ignore', 'pipe'] });
    const ended = once(child, 'close');
    let written = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      written += text;
    });
    return { child, ended, out, written: () => written };
  };

  it('ends with 1 at a refusal', async () => {
    const refusal = { error: { code: 'unauthorized', message: 'No.' }, request_id: 'id' };
    const { child, ended, written } = await start('open.csv', json(401, refusal));
    child.stdin?.write('9.1.1.1 - -\n'.repeat(60));
    expect((await ended)[0]).toBe(1);
    expect(written()).toContain('401 unauthorized');
  }, 20_000);

  it('looks up the first address at once, and ends on a signal', async () => {
    const body = await found('9.1.1.1').json();
    const { child, ended, out, written } = await start('quiet.csv', json(200, body));
    child.stdin?.write('9.1.1.1\n');
    const rows = () => (existsSync(`${out}.part`) ? rowsOf(`${out}.part`) : []);
    await eventually('a row', rows, (all) => all.length === 1);
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(130);
    expect(written()).toContain('Stopped: the same command goes on from here');
  }, 20_000);
});

describe('the file of companies', () => {
  const failed = (ip: string): LookedUp => ({ ip, result: null, error: { code: 'invalid_ip' } as never });

  it('continues what an earlier run has left, without the half line of a killed run', async () => {
    const path = join(folder, 'resumed.csv');
    const first = await openCompaniesFile(path);
    await first.write(failed('9.1.1.1'), 3);
    await first.close();
    appendFileSync(`${path}.part`, '9.1.1.2,4,comp');
    const second = await openCompaniesFile(path);
    expect([...second.finished]).toEqual(['9.1.1.1']);
    await second.write(failed('9.1.1.3'), 1);
    await second.finish(new Map([['9.1.1.3', { requests: 2 }]]));
    expect(readFileSync(path, 'utf8').split('\n').slice(1)).toEqual([
      '9.1.1.1,3,,,,,,,,,,,,invalid_ip',
      '9.1.1.3,2,,,,,,,,,,,,invalid_ip',
      '',
    ]);
  });

  it('continues a run that was killed within its own header', async () => {
    const path = join(folder, 'header.csv');
    writeFileSync(`${path}.part`, 'ip,requests,mat');
    const opened = await openCompaniesFile(path);
    await opened.finish(new Map());
    expect(readFileSync(path, 'utf8')).toMatch(/^ip,requests,.*,error\n$/);
  });

  it('is not changed where it holds something else, unless that is asked for', async () => {
    const path = file('a,b\nlast');
    await expect(openCompaniesFile(path)).rejects.toThrow('not a file of this command');
    expect([readFileSync(path, 'utf8'), existsSync(`${path}.part`)]).toEqual(['a,b\nlast', false]);
    const forced = await openCompaniesFile(path, { force: true });
    expect(readFileSync(path, 'utf8')).toBe('a,b\nlast');
    await forced.finish(new Map());
    expect(readFileSync(path, 'utf8')).not.toContain('last');
  });

  it('has cells that no spreadsheet takes for formulas, and that are read back', () => {
    expect(csvLine(['=1+1', 'a "b", c', null, 7])).toBe(`'=1+1,"a ""b"", c",,7\n`);
    expect(csvLine(['＝1', '＋1', '－1', '＠A'])).toBe(`'＝1,'＋1,'－1,'＠A\n`);
    expect(parseCsvLine(`'=1+1,"a ""b"", c",,7`)).toEqual([`'=1+1`, 'a "b", c', '', '7']);
  });
});

it('names of companies and codes of the service send no control characters to a terminal', () => {
  expect(csvLine(['a\u001b[2J\u009bb', '\t=1', '\r\n-1', 'a\u2028b'])).toBe(`a [2J b,' =1,' -1,a b\n`);
  const waiting = { ms: 1_000, code: 'x\u001b]0;y\u0007' } as never;
  expect(progressText({ total: 1, done: 0, pending: 0, waiting }, 0)).not.toMatch(/\p{Cc}/u);
});
