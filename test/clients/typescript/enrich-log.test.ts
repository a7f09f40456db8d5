import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { openCompaniesFile } from '../../../clients/typescript/src/cli/companies-file.ts';
import { csvLine, parseCsvLine } from '../../../clients/typescript/src/cli/csv.ts';
import { progressText } from '../../../clients/typescript/src/cli/progress.ts';
import { type LogFormat, readLog } from '../../../clients/typescript/src/cli/read-log.ts';
import type { LookedUp } from '../../../clients/typescript/src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'doorplate-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const file = (content: string | Buffer, name = ''): string => {
  files += 1;
  const path = join(folder, `${files}${name}`);
  writeFileSync(path, content);
  return path;
};
const addressesOf = async (content: string, format: LogFormat, field?: string) => {
  const { requests, ...counts } = await readLog(file(content), format, field);
  return { ...counts, requests: Object.fromEntries(requests) };
};

describe('readLog', () => {
  it('counts lines by address, and those without a public one', async () => {
    const log =
      '9.1.1.1 - - "GET /"\n\nexample.com:443 9.1.1.1 - -\n10.1.2.3 - -\n::1 - -\nnonsense\n2A00::1 - -\r\n';
    expect(await addressesOf(log, 'combined')).toEqual({
      lines: 6,
      without: 1,
      notPublic: 2,
      requests: { '9.1.1.1': 2, '2a00::1': 1 },
    });
  });

  it('reads JSON lines by a usual name, or by the field that is named', async () => {
    const log = '{"remote_addr":"9.1.1.1"}\n{"x":{"ip":1}}\n{"visitor":"9.1.1.2, 10.0.0.1"}\nnull\n{\n';
    expect((await addressesOf(log, 'json')).requests).toEqual({ '9.1.1.1': 1 });
    expect((await addressesOf(log, 'json', 'visitor')).requests).toEqual({ '9.1.1.2': 1 });
  });

  it('reads CSV with a header, without one, and refuses a column that is not there', async () => {
    expect((await addressesOf('time,"Client_IP"\n1,9.1.1.1\n', 'csv')).requests).toEqual({ '9.1.1.1': 1 });
    expect((await addressesOf('"a,b",9.1.1.1\n"c",9.1.1.2\n', 'csv')).requests).toEqual({
      '9.1.1.1': 1,
      '9.1.1.2': 1,
    });
    await expect(addressesOf('time,ip\n', 'csv', 'visitor')).rejects.toThrow('visitor');
  });

  it('unpacks what ends in .gz', async () => {
    const { requests } = await readLog(file(gzipSync('9.1.1.1 - -\n'), '.gz'), 'combined', undefined);
    expect([...requests.keys()]).toEqual(['9.1.1.1']);
  });
});

describe('the file of companies', () => {
  const failed = (ip: string): LookedUp => ({ ip, result: null, error: { code: 'invalid_ip' } as never });

  it('resumes after what an earlier run has finished, and drops the half line of a killed run', async () => {
    const path = join(folder, 'resumed.csv');
    const first = await openCompaniesFile(path);
    await first.write(failed('9.1.1.1'), 3);
    await first.close();
    writeFileSync(path, `${readFileSync(path, 'utf8')}9.1.1.2,4,comp`);
    const second = await openCompaniesFile(path);
    expect([...second.finished]).toEqual(['9.1.1.1']);
    await second.write(failed('9.1.1.3'), 1);
    await second.close();
    expect(readFileSync(path, 'utf8').split('\n').slice(1)).toEqual([
      '9.1.1.1,3,,,,,,,,,,,,invalid_ip',
      '9.1.1.3,1,,,,,,,,,,,,invalid_ip',
      '',
    ]);
  });

  it('is not written over a file that holds something else', async () => {
    const path = file('my,own,data\n');
    await expect(openCompaniesFile(path)).rejects.toThrow('not a file of this command');
    expect(readFileSync(path, 'utf8')).toBe('my,own,data\n');
  });

  it('has cells that no spreadsheet takes for formulas, and that are read back', () => {
    expect(csvLine(['=1+1', 'a "b", c', null, 7])).toBe(`'=1+1,"a ""b"", c",,7\n`);
    expect(parseCsvLine(`'=1+1,"a ""b"", c",,7`)).toEqual([`'=1+1`, 'a "b", c', '', '7']);
  });
});

it('names of companies and codes of the service send no control characters to a terminal', () => {
  expect(csvLine(['a\u001b[2J\u009bb', '\t=1', '\r\n-1'])).toBe('a [2J b, =1, -1\n');
  const waiting = { ms: 1_000, code: 'x\u001b]0;y\u0007' } as never;
  expect(progressText({ total: 1, done: 0, pending: 0, waiting }, 0)).not.toMatch(/\p{Cc}/u);
});
