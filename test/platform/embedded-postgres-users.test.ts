import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { findSystemUser, firstClosedFolder } from '../../platform/embedded/location.ts';
import { type HelperOptions, startHelper } from '../support/processes.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const UNPRIVILEGED = { name: 'nobody', uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const asUnprivileged = isRoot && firstClosedFolder(CHECKOUT, UNPRIVILEGED) === null;
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

let folder: string;
const shared = () => join(folder, 'shared');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-pg-'));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const server = (dataDir: string, options: HelperOptions = {}, checkout = CHECKOUT) =>
  startHelper<{ url: string; pid: number; error?: string }>(
    join(checkout, 'test/support/embedded-postgres-process.ts'),
    [dataDir, 'own', shared()],
    { ...options, cwd: folder },
  );

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query('SELECT 1');
  await client.end();
  return rowCount === 1;
}

const uidOf = (pid: number) => statSync(`/proc/${pid}`).uid;

describe.skipIf(!isRoot)('embedded PostgreSQL as root', () => {
  it('runs as another user', async () => {
    const { child, line, ended } = await server(join(folder, 'data'));
    expect(uidOf(line.pid)).not.toBe(0);
    expect(await answers(line.url)).toBe(true);
    child.stdin?.end();
    await ended;
  });

  it('keeps the data elsewhere when that user cannot reach the data folder, and finds them again', async () => {
    const home = closedFolder('home');
    const dataDir = join(home, 'data');
    const first = await server(dataDir);
    const otherFolder = readFileSync(join(dataDir, 'postgres.location'), 'utf8').trim();
    expect(dirname(otherFolder)).toBe(shared());
    expect(await answers(first.line.url)).toBe(true);
    first.child.stdin?.end();
    await first.ended;

    const second = await server(dataDir);
    expect(second.line.url).toBe(first.line.url);
    second.child.stdin?.end();
    await second.ended;
  });

  it('reports that the path to earlier data is closed instead of starting with new data', async () => {
    const home = join(folder, 'home');
    mkdirSync(home);
    const first = await server(join(home, 'data'));
    first.child.stdin?.end();
    await first.ended;
    chmodSync(home, 0o700);
    const { line } = await server(join(home, 'data'));
    expect(line.error).toMatch(`may not enter ${home} any more`);
  });
});

describe.skipIf(!asUnprivileged)('as a user that root can become (needs root and an open checkout)', () => {
  it('runs as that user alone', async () => {
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir);
    chownSync(dataDir, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    const { child, line, ended } = await server(dataDir, UNPRIVILEGED);
    expect(uidOf(line.pid)).toBe(UNPRIVILEGED.uid);
    expect(await answers(line.url)).toBe(true);
    child.stdin?.end();
    await ended;

    const asRoot = await server(dataDir);
    expect(uidOf(asRoot.line.pid)).toBe(UNPRIVILEGED.uid);
    asRoot.child.stdin?.end();
    await asRoot.ended;
  });

  it('reports what to do where its uid has no name', async () => {
    const nameless = { uid: 54_321, gid: 54_321 };
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir);
    chownSync(dataDir, nameless.uid, nameless.gid);
    const { line } = await server(dataDir, nameless);
    expect(line.error).toMatch(/uid 54321 has none: add it to \/etc\/passwd, start as another user, or set/);
  });

  it('reports in one line that it may not use a data folder', async () => {
    const dataDir = join(closedFolder('home'), 'data');
    const { line } = await server(dataDir, UNPRIVILEGED);
    expect(line.error).toBe(
      `the data folder ${dataDir} cannot be used: user ${UNPRIVILEGED.uid} may not read and write it`,
    );
  });
});

describe.skipIf(isRoot)('as a normal user', () => {
  it('reports in one line that it may not use a data folder', async () => {
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o500 });
    await expect(startEmbeddedPostgres({ dataDir, log: quiet })).rejects.toThrow(
      /may not read and write it$/,
    );
  });
});

describe('the system user for PostgreSQL', () => {
  const machine = (users: Record<string, number>, programs: readonly string[]) => {
    const run = (program: string, args: readonly string[]): string => {
      const name = args.at(-1) as string;
      if (program === 'id' && name in users) return `${users[name]}\n`;
      if (!programs.includes(program)) throw new Error(`${program}: not found\nmore`);
      users[name] = 997;
      return '';
    };
    return run;
  };

  it('is postgres where that user exists', () => {
    const user = findSystemUser(machine({ postgres: 101, doorplate: 997 }, []));
    expect(user).toEqual({ name: 'postgres', uid: 101, gid: 101 });
  });

  it('is doorplate otherwise, created with any program that the machine has', () => {
    for (const program of ['useradd', 'adduser']) {
      expect(findSystemUser(machine({}, [program]))).toEqual({ name: 'doorplate', uid: 997, gid: 997 });
    }
  });

  it('is requested in one line when none can be created', () => {
    expect(() => findSystemUser(machine({}, []))).toThrow(
      /^PostgreSQL does not run as root and no user "doorplate" could be created.*set DATABASE_URL$/,
    );
  });
});

function closedFolder(name: string): string {
  const closed = join(folder, name);
  mkdirSync(closed, { mode: 0o700 });
  return closed;
}
