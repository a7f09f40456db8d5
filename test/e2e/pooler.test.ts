/** What an operator is told who names PgBouncer in DATABASE_URL. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { doorplate, type Environment, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** Debian's, or the one that `PGBOUNCER` names. */
const PGBOUNCER = process.env.PGBOUNCER ?? '/usr/sbin/pgbouncer';
const NEEDS_DIRECT = /^[^\n]*Doorplate needs a direct connection to PostgreSQL[^\n]*$/m;

describe.skipIf(!existsSync(PGBOUNCER))('DATABASE_URL through PgBouncer', () => {
  const folder = makeTemporaryFolder('doorplate-pgbouncer-');
  const poolers: ChildProcess[] = [];
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase();
    // PgBouncer runs as another user.
    chmodSync(folder, 0o755);
  });
  afterAll(async () => {
    for (const pooler of poolers)
      if (pooler.exitCode === null && pooler.kill('SIGKILL')) await once(pooler, 'close');
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  /** Starts a PgBouncer before the test's database. @returns the variables of a process that uses it */
  const startPooler = async (settings: readonly string[]): Promise<Environment> => {
    const port = await freePort();
    const { user, password, host, port: serverPort, database: name } = new pg.Client(database.url);
    const file = join(folder, `${port}.ini`);
    const lines = [
      '[databases]',
      `${name} = host=${host} port=${serverPort} user=${user} password=${password} dbname=${name}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any`,
      ...settings,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    // As root it refuses to run, and another user cannot reach the server's socket.
    const { uid, gid } = statSync(host, { throwIfNoEntry: false }) ?? {};
    const identity = process.getuid?.() === 0 ? { uid, gid } : {};
    const pooler = spawn(PGBOUNCER, [file], { stdio: 'ignore', ...identity });
    if (pooler.pid !== undefined) reapProcess(pooler.pid);
    poolers.push(pooler);
    await eventually(
      'PgBouncer listens',
      async () => {
        const socket = connect(port, '127.0.0.1');
        const opened = (await once(socket, 'connect').catch(() => null)) !== null;
        socket.destroy();
        return opened;
      },
      Boolean,
    );
    return {
      DATABASE_URL: `postgresql://${user}@127.0.0.1:${port}/${name}`,
      DATA_DIR: join(folder, `data-${port}`),
      MASTER_KEY,
      PORT: `${await freePort()}`,
      OPS_PORT: `${await freePort()}`,
    };
  };

  it.each([
    ['as it comes', []],
    ['that ignores the settings of sessions', ['ignore_startup_parameters = options, extra_float_digits']],
    [
      'that ignores them all, and keeps sessions',
      ['ignore_startup_parameters = options, extra_float_digits, statement_timeout', 'pool_mode = session'],
    ],
    [
      'that ignores them all, and gives each transaction another session',
      [
        'ignore_startup_parameters = options, extra_float_digits, statement_timeout, lock_timeout, idle_in_transaction_session_timeout',
        'pool_mode = transaction',
      ],
    ],
  ])('is refused by a start, a command and doctor, %s', async (_how, settings) => {
    const env = await startPooler(settings);
    for (const args of [['serve'], ['partner', 'list']]) {
      const { code, stderr } = await doorplate(args, env);
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(NEEDS_DIRECT) });
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
    const { code, stdout } = await doorplate(['doctor', '--json'], env);
    expect(code).toBe(1);
    expect(JSON.parse(stdout).checks.filter((check: { ok: boolean }) => !check.ok)).toMatchObject([
      {
        name: 'postgresql',
        detail: expect.stringMatching(NEEDS_DIRECT),
        fix: 'name PostgreSQL itself in DATABASE_URL',
      },
    ]);
  });
});
