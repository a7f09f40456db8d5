import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientOf } from '../support/analysts.ts';
import { startDoorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { type Service, startService } from '../support/service.ts';

const PAGE = 'https://www.example.com';
const VISITOR = '8.8.8.8';
const LABEL = 'a-label-of-a-campaign';

let service: Service;
let key: string;
let session: { session_id: string; tracker_id: string };
let partner: string;

const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await service.cli(...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};
const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** Makes a visit, its session in the feed, and a lookup. */
beforeAll(async () => {
  service = await startService();
  key = service.demoKey();
  const body = { name: 'site', origins: [PAGE] };
  const tracker = await service.call('POST', '/v1/trackers', { key, body });
  await fetch(`${service.url}/tracking/collect`, {
    method: 'POST',
    headers: { origin: PAGE, 'x-forwarded-for': VISITOR, 'content-type': 'text/plain' },
    body: JSON.stringify({
      tracker_id: tracker.body.id,
      token: randomUUID(),
      visit_id: randomUUID(),
      custom: { campaign: LABEL },
    }),
  });
  const feed = await eventually(
    'the session is in the feed',
    () => service.call('GET', '/v1/sessions', { key }),
    ({ body }) => body.sessions.length === 1,
  );
  session = feed.body.sessions[0];
  await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.4.4' } });
  partner = (await json('partner', 'list'))[0].partner_id;
});
afterAll(() => service.remove());

describe('doorplate analytics', () => {
  it('grants a user, which reads the views over the printed socket, and revokes the grant', async () => {
    const granted = await json('analytics', 'grant', 'alice');
    expect(granted).toMatchObject({ user: 'alice', role: 'doorplate_analyst', database: 'doorplate' });
    expect(granted.connect).toBe(`psql 'host=${granted.host} port=5432 dbname=doorplate user=alice'`);
    const alice = clientOf(granted);
    await alice.connect();
    const { rows } = await alice.query('select session_id from sessions');
    expect(rows).toEqual([{ session_id: session.session_id }]);
    await expect(alice.query('select * from read.session')).rejects.toThrow('permission denied');
    await alice.end();
    expect(await json('analytics', 'revoke', 'alice')).toEqual({ user: 'alice', dropped: true });
    const again = await service.cli('analytics', 'revoke', 'alice');
    expect(again).toMatchObject({ code: 1, stderr: 'doorplate: analyst_not_found: alice\n' });
    expect((await service.cli('analytics', 'grant', 'doorplate')).code).toBe(1);
    expect((await service.cli('analytics', 'grant')).code).toBe(2);
  });

  it('prints a line for psql that a shell and libpq read as it is meant, whatever the name holds', async () => {
    const { connect, host } = await json('analytics', 'grant', `o'b $x"y\\`);
    const { stdout } = await promisify(execFile)('sh', ['-c', `psql() { printf %s "$1"; }; ${connect}`]);
    expect(stdout).toBe(`host=${host} port=5432 dbname=doorplate user='o\\'b $x"y\\\\'`);
  });
});

describe('doorplate export', () => {
  it('writes a view as CSV and as Parquet', async () => {
    const csv = join(service.dataDir, 'sessions.csv');
    expect(await json('export', 'sessions', '--format', 'csv', '--out', csv)).toMatchObject({
      rows: 1,
      file: csv,
    });
    expect(readFileSync(csv, 'utf8')).toContain(session.session_id);
    const parquet = join(service.dataDir, 'sessions.parquet');
    await json('export', 'sessions', '--format', 'parquet', '--out', parquet, '--from', '2020-01-01');
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(parquet) });
    expect(rows).toMatchObject([{ session_id: session.session_id }]);
  });

  it('loads what changed after a position, and prints the next one', async () => {
    const load = (since: string) =>
      json('export', 'sessions', '--format', 'parquet', '--out', service.dataDir, '--since', since);
    const first = await load('0');
    expect(first).toMatchObject({ view: 'sessions', since: '0', rows: 1, deleted: 0, files: 1 });
    expect(first.folder).toBe(join(service.dataDir, 'sessions', 'since=0'));
    expect(await load(first.position)).toMatchObject({ since: first.position, rows: 0, folder: null });
    const refused = await service.cli(
      ...['export', 'lookups', '--format', 'parquet', '--out', service.dataDir, '--since', '0'],
    );
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^doorplate: no_positions: .*sessions.*\n$/);
  });

  it('refuses an unknown view or option', async () => {
    const out = join(service.dataDir, 'none.csv');
    const unknown = await service.cli('export', 'secrets', '--format', 'csv', '--out', out);
    expect(unknown.code).toBe(1);
    expect(unknown.stderr).toContain('view_not_found: secrets; there are api_keys, ');
    for (const wrong of [
      ['--format', 'xls'],
      ['--format', 'csv', '--from', 'June'],
      ['--format', 'csv', '--limit', '0'],
      ['--format', 'csv', '--since', '0'],
      ['--format', 'parquet', '--since', '-1'],
      ['--format', 'parquet', '--since', '0', '--limit', '1'],
    ]) {
      expect((await service.cli('export', 'sessions', '--out', out, ...wrong)).code, wrong.join(' ')).toBe(2);
    }
    expect(existsSync(out)).toBe(false);
  });
});

describe('doorplate events show', () => {
  const tab = async () => {
    const all = lines(
      (await untilPrinted(['events', 'tail', '--from-start', '--prefix', 'tab-', '--json'], 1)).stdout,
    );
    return String(all[0].stream);
  };

  it('prints a stream, personal data masked unless requested', async () => {
    const stream = await tab();
    const [created] = lines((await service.cli('events', 'show', stream, '--json')).stdout);
    expect(created).toMatchObject({
      stream,
      revision: 0,
      type: 'sessions.SessionCreated.v1',
      position: expect.stringMatching(/^\d+$/),
      data: { session_id: session.session_id, sealed: '(masked)', visitor: '(masked)' },
      metadata: { at: created.at, partner_id: partner },
    });
    const [unmasked] = lines((await service.cli('events', 'show', stream, '--json', '--unmask')).stdout);
    expect(unmasked.data.sealed).toEqual({ ip: VISITOR, custom: { campaign: LABEL } });
  });

  it('never prints the hash of a key', async () => {
    const { stdout } = await service.cli('events', 'show', `partner-${partner}`, '--unmask', '--limit', '2');
    expect(stdout).toContain(`partner-${partner}  1  partners.KeyCreated.v1  `);
    expect(stdout).toContain('"hash":"(secret)"');
    expect(stdout).not.toContain('"metadata":"(secret)"');
  });

  it('starts, ends and reverses as requested', async () => {
    const revisions = async (...options: string[]) =>
      lines((await service.cli('events', 'show', `partner-${partner}`, '--json', ...options)).stdout).map(
        ({ revision }) => revision,
      );
    expect(await revisions('--from', '1', '--limit', '1')).toEqual([1]);
    expect(await revisions('--from', '1', '--backwards')).toEqual([1, 0]);
  });

  it('reports an unknown stream', async () => {
    expect(await service.cli('events', 'show', 'tab-none')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'doorplate: stream_not_found: tab-none: there never was one, or it has expired\n',
    });
  });
});

/** Runs the command until it has printed the given number of lines, then sends SIGINT as Ctrl-C does. */
const untilPrinted = async (args: string[], count: number, meanwhile?: () => Promise<unknown>) => {
  const running = startDoorplate(args, service.env);
  const printed = () => running.stdout().split('\n').length - 1;
  await meanwhile?.();
  await eventually(
    'it has printed',
    async () => printed(),
    (lines_) => lines_ >= count,
    20_000,
  );
  running.child.kill('SIGINT');
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
};

describe('doorplate events tail', () => {
  it('follows new events after a position in the log until Ctrl-C', async () => {
    const before = lines(
      (await service.cli('events', 'show', `partner-${partner}`, '--json', '--backwards')).stdout,
    );
    const from = ['--from', before[0].position, '--prefix', 'partner-'];
    const { code, stdout, stderr } = await untilPrinted(['events', 'tail', '--json', ...from], 1, () =>
      json('partner', 'create', 'followed'),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines(stdout)).toMatchObject([{ type: 'partners.PartnerCreated.v1', data: { name: 'followed' } }]);
  });

  it('exits cleanly when the reader of its output has gone', async () => {
    const running = startDoorplate(['events', 'tail', '--from-start', '--json'], service.env);
    const { stdout } = running.child;
    await new Promise((resolve) => stdout?.once('data', resolve));
    // Only what it prints from here on tells it that nobody reads.
    stdout?.destroy();
    await json('partner', 'create', 'unread');
    expect(await running.ended).toBe(0);
  });
});
