import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../platform/embedded/embedded-postgres.ts';
import { EmbeddedPostgresError, identify } from '../../platform/embedded/processes.ts';
import { startHelper } from '../support/processes.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const SERVER = new URL('../support/embedded-postgres-process.ts', import.meta.url);
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

/** One for all tests: each start of PostgreSQL takes 0.1 s, but its initdb 2 s. */
let folder: string;
let longFolder: string;
let started: EmbeddedPostgres[] = [];

beforeAll(() => {
  folder = makeTemporaryFolder('doorplate-pg-');
  longFolder = join(folder, 'long'.repeat(30));
  // PostgreSQL's user must be able to enter it when root runs the tests.
  chmodSync(folder, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(async () => {
  await Promise.all(started.map((postgres) => postgres.stop()));
  started = [];
});

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir: folder, log: quiet, durable: false, ...options });
  started.push(postgres);
  return postgres;
}

const server = (mode = 'own', dataDir = folder) =>
  startHelper<{ url: string; pid: number; error?: string }>(SERVER, [dataDir, mode, join(folder, 'shared')]);

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

/** Runs it until the end of the test. */
function overwrite(name: string, content: string): void {
  const file = join(folder, 'postgres/cluster', name);
  const before = readFileSync(file);
  writeFileSync(file, content);
  onTestFinished(() => writeFileSync(file, before));
}

const isGone = (pid: number) => vi.waitFor(() => expect(identify(pid)).toBeNull(), 10_000);

describe('the embedded PostgreSQL', () => {
  it('starts, stops, and uses its data at the next start', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE visit AS SELECT 7 AS id');
    await first.stop();
    await first.stop();
    expect(identify(first.pid)).toBeNull();

    const second = await start();
    expect(await query(second.url, 'SELECT id FROM visit')).toEqual([{ id: 7 }]);
  });

  it("ignores PostgreSQL's own variables, which are of another server", async () => {
    vi.stubEnv('PGSSLMODE', 'require');
    vi.stubEnv('PGSSLNEGOTIATION', 'direct');
    vi.stubEnv('PGPASSWORD', 'of another server');
    const { url } = await start();
    expect(await query(url, 'SELECT current_user')).toEqual([{ current_user: 'doorplate' }]);
    vi.unstubAllEnvs();
  });

  it('is configured for Unicode, small machines and durable commits', async () => {
    const { url } = await start({ durable: true });
    const rows = await query(
      url,
      `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'jit', 'max_connections',
       'shared_buffers', 'server_encoding', 'TimeZone', 'max_notify_queue_pages') ORDER BY name COLLATE "C"`,
    );
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      TimeZone: 'UTC',
      fsync: 'on',
      jit: 'off',
      max_connections: '100',
      // In blocks of 8 KB: the disk space that a login may fill.
      max_notify_queue_pages: '16384',
      server_encoding: 'UTF8',
      shared_buffers: '16384',
      synchronous_commit: 'on',
    });
    expect(await query(url, `SELECT lower('ÄÖÜ') AS low`)).toEqual([{ low: 'äöü' }]);
  });

  it('runs in its own session, so Ctrl-C in the terminal does not reach it', async () => {
    const { pid } = await start();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    expect(Number(session)).toBe(pid);
  });

  it('keeps its password from other users', async () => {
    const { url } = await start();
    expect(statSync(join(folder, 'postgres/password')).mode & 0o777).toBe(0o600);
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  });

  it('serves on loopback, always on the same port, when the path is too long for a Unix socket', async () => {
    const first = await start({ dataDir: longFolder });
    expect(first.url).toContain('@127.0.0.1:');
    await first.stop();
    expect((await start({ dataDir: longFolder })).url).toBe(first.url);
  });

  it('survives a kill -9 of its server process, and the next start takes it over', async () => {
    const { child, line, ended } = await server();
    child.kill('SIGKILL');
    await ended;

    const successor = await start();
    expect(successor).toMatchObject(line);
    process.kill(successor.pid, 'SIGKILL');
    await vi.waitFor(() => query(successor.url, 'SELECT 1'), 10_000);
    await successor.stop();
    await isGone(successor.pid);
  });

  it('starts over a pid file whose process id now belongs to another program', async () => {
    const first = await start();
    await first.stop();
    const note = `${process.pid}\n${folder}/postgres/cluster\n1\n5432\n\n\n0 0\nready\n`;
    writeFileSync(join(folder, 'postgres/cluster/postmaster.pid'), note);
    expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it.each(['postgres/cluster/postmaster.pid', 'postgres/run/.s.PGSQL.5432.lock'])(
    "starts over %s whose process id now belongs to another folder's PostgreSQL, which runs on",
    async (name) => {
      const other = await start({ dataDir: join(folder, 'other') });
      const first = await start();
      await first.stop();
      const note = `${other.pid}\n${folder}/postgres/cluster\n1\n5432\n\n\n0 0\nready\n`;
      writeFileSync(join(folder, name), note);
      expect(await query((await start()).url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      expect(await query(other.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    },
  );

  it('restarts at the same URL when it is killed under a running server', async () => {
    const postgres = await start();
    const before = postgres.pid;
    process.kill(before, 'SIGKILL');
    await vi.waitFor(() => expect(postgres.pid).not.toBe(before), 10_000);
    expect(await query(postgres.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('refuses data of another version and names both versions', async () => {
    const first = await start();
    await first.stop();
    overwrite('PG_VERSION', '15\n');
    await expect(start()).rejects.toThrow(/are PostgreSQL 15's and this is 18/);
  });

  it("reports PostgreSQL's own error in one line", async () => {
    const first = await start();
    await first.stop();
    overwrite('postgresql.conf', 'no_such_setting = 1\n');
    const failure = await start().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EmbeddedPostgresError);
    expect((failure as Error).message).toMatch(
      /^PostgreSQL did not start: .*"no_such_setting".*contains errors$/,
    );
  });
});

describe('several processes on one data folder', () => {
  it('refuses a second server and names the first', async () => {
    const { child, ended } = await server();
    await expect(start()).rejects.toThrow(`the data folder ${folder} is in use by process ${child.pid}`);
    child.stdin?.end();
    await ended;
  });

  it('let a command join a running server and leave it running', async () => {
    const { child, line, ended } = await server();
    const command = await start({ mode: 'join' });
    expect(command).toMatchObject(line);
    await command.stop();
    expect(await query(line.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    child.stdin?.end();
    await ended;
    await isGone(line.pid);
  });

  it('start and stop it for a command alone', async () => {
    const command = await start({ mode: 'join' });
    expect(await query(command.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await command.stop();
    expect(identify(command.pid)).toBeNull();
  });

  it('end it with the last process that uses it', async () => {
    const { child, line, ended } = await server();
    const command = await start({ mode: 'join' });
    child.stdin?.end();
    await ended;
    expect(await query(command.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await command.stop();
    expect(identify(line.pid)).toBeNull();
  });

  it('let one of two servers win that start at once', async () => {
    const both = await Promise.all([server(), server()]);
    const errors = both.flatMap(({ line }) => line.error ?? []);
    expect(errors).toEqual([expect.stringMatching(/is in use by process \d+$/)]);
    for (const { child } of both) child.stdin?.end();
    await Promise.all(both.map(({ ended }) => ended));
  });
});
