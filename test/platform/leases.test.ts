import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import pg from 'pg';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../platform/clock.ts';
import { enterLeases } from '../../platform/leases.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
let pool: pg.Pool;
let children: ChildProcess[] = [];
beforeAll(async () => {
  database = await testDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  await pool.query('delete from work.lease; delete from work.process');
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** A process that leads groups, and what it said of them. */
const startHolder = (groups: string) => {
  const script = new URL('../support/lease-holder.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, database.url, groups], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const led = new Map<string, string>();
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    const said = JSON.parse(line) as { leads?: string; ends?: string; number: string };
    if (said.leads !== undefined) led.set(said.leads, said.number);
    if (said.ends !== undefined) led.delete(said.ends);
  });
  return { child, led };
};
const secondsUntil = async (what: string, check: () => boolean): Promise<number> => {
  const began = performance.now();
  await until(what, check);
  return (performance.now() - began) / 1_000;
};

describe('a group', () => {
  it('is led by another process within 5 s when its leader is killed', async () => {
    const first = startHolder('a');
    await until('the first leads', () => first.led.has('a'));
    const second = startHolder('a');
    await until(
      'the second has entered',
      async () => (await pool.query('select from work.process')).rowCount === 2,
    );
    first.child.kill('SIGKILL');
    expect(await secondsUntil('the second leads', () => second.led.has('a'))).toBeLessThan(5);
    expect(Number(second.led.get('a'))).toBeGreaterThan(Number(first.led.get('a')));
  });

  it('is led by another process within 10 s when its leader is frozen, which leads it no more when it wakes', async () => {
    const first = startHolder('b');
    await until('the first leads', () => first.led.has('b'));
    const second = startHolder('b');
    await until(
      'the second has entered',
      async () => (await pool.query('select from work.process')).rowCount === 2,
    );
    first.child.kill('SIGSTOP');
    expect(await secondsUntil('the second leads', () => second.led.has('b'))).toBeLessThan(10);
    first.child.kill('SIGCONT');
    await until('the first has ended it', () => !first.led.has('b'));
    expect(second.led.has('b')).toBe(true);
  });

  it('is led by another process at once when its leader stops', async () => {
    const first = startHolder('c');
    await until('the first leads', () => first.led.has('c'));
    const second = startHolder('c');
    await until(
      'the second has entered',
      async () => (await pool.query('select from work.process')).rowCount === 2,
    );
    first.child.kill('SIGTERM');
    expect(await secondsUntil('the second leads', () => second.led.has('c'))).toBeLessThan(2);
  });
});

describe('groups', () => {
  it('are shared out to a process that comes later', async () => {
    const first = startHolder('a,b,c,d');
    await until('the first leads all', () => first.led.size === 4);
    const second = startHolder('a,b,c,d');
    await until('each leads two', () => first.led.size === 2 && second.led.size === 2);
    expect(new Set([...first.led.keys(), ...second.led.keys()]).size).toBe(4);
  });

  it('are given up by a command when a worker enters', async () => {
    const log = pino({ level: 'silent' });
    const command = await enterLeases({ url: database.url, role: 'command', clock: systemClock, log });
    let leads = false;
    command.lead('a', async (_lease, signal) => {
      leads = true;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      leads = false;
    });
    await until('the command leads', () => leads);
    const worker = startHolder('a');
    await until('the worker leads', () => worker.led.has('a'));
    expect(leads).toBe(false);
    await command.stop();
  });
});

it('a session that is cut does not take the lead from a process that lives', async () => {
  const first = startHolder('d');
  await until('the first leads', () => first.led.has('d'));
  const { rows } = await pool.query('select process_id from work.process');
  await pool.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1', [
    `doorplate heartbeat ${rows[0].process_id}`,
  ]);
  const beats = async () => Number((await pool.query('select beats from work.process')).rows[0]?.beats ?? 0);
  const before = await beats();
  await until('it beats again', async () => (await beats()) > before + 1);
  expect(first.led.get('d')).toBe('1');
});
