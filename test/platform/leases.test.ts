import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type pg from 'pg';
import pino from 'pino';
import { it as base, describe, expect } from 'vitest';
import { systemClock } from '../../platform/clock/clock.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import { testDatabase, testPool } from '../support/database.ts';
import { until } from '../support/until.ts';

const log = pino({ level: 'silent' });
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

interface Stage {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Starts a process that leads groups, with its log of them. */
  startHolder(groups: string): { readonly child: ChildProcess; readonly led: ReadonlyMap<string, string> };
  beatsOf(processId: string): Promise<number>;
}

/** Each test has a database of its own, because leases are shared by all processes on one. */
const it = base.extend('stage', async ({ task: _task }, { onCleanup }): Promise<Stage> => {
  const database = await testDatabase();
  const pool = testPool(database, 2);
  const children: ChildProcess[] = [];
  onCleanup(async () => {
    for (const child of children) child.kill('SIGKILL');
    await pool.end();
    await database.drop();
  });
  return {
    url: database.url,
    pool,
    startHolder: (groups) => {
      const started = startHolder(database.url, groups);
      children.push(started.child);
      return started;
    },
    beatsOf: async (processId) => {
      const { rows } = await pool.query('select beats from work.process where process_id = $1', [processId]);
      return Number(rows[0]?.beats ?? 0);
    },
  };
});

const startHolder = (url: string, groups: string) => {
  const script = new URL('../support/lease-holder.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, url, groups], { stdio: ['ignore', 'pipe', 'inherit'] });
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
  it('is led by another process within 5 s when its leader is killed', async ({
    stage: { pool, startHolder },
  }) => {
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

  it('is led by another process within 10 s when its leader is frozen, which no longer leads it when it wakes', async ({
    stage: { pool, startHolder },
  }) => {
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

  it('is led by another process at once when its leader stops', async ({ stage: { pool, startHolder } }) => {
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

// Those without limits of time wait at the same time.
describe.concurrent('groups', () => {
  it('are divided when another process starts', async ({ stage: { startHolder } }) => {
    const first = startHolder('a,b,c,d');
    await until('the first leads all', () => first.led.size === 4);
    const second = startHolder('a,b,c,d');
    await until('each leads two', () => first.led.size === 2 && second.led.size === 2);
    expect(new Set([...first.led.keys(), ...second.led.keys()]).size).toBe(4);
  });

  it('start once each in a process that hands some of them to another', async ({
    stage: { startHolder, url },
  }) => {
    const first = await enterLeases({ url: url, role: 'workers', clock: systemClock, log });
    let starts = 0;
    const led = new Set<string>();
    for (const name of ['a', 'b', 'c', 'd'])
      first.lead(name, async (_lease, signal) => {
        starts += 1;
        led.add(name);
        await aborted(signal);
        led.delete(name);
      });
    await until('the first leads all', () => led.size === 4);
    const second = startHolder('a,b,c,d');
    await until('each leads two', () => led.size === 2 && second.led.size === 2);
    expect(starts).toBe(4);
    await first.stop();
  });
});

describe.concurrent('the providers that workers ask', () => {
  it('are what every process with workers asks, and none while one of them is not known to ask any', async ({
    stage: { url },
  }) => {
    const enter = (role: 'api' | 'workers' | 'command') =>
      enterLeases({ url: url, role, clock: systemClock, log });
    const api = await enter('api');
    expect(api.providers()).toEqual([]);
    const first = await enter('workers');
    first.announce(['directory', 'vendor']);
    expect(first.providers()).toEqual(['directory', 'vendor']);
    await until('the api knows them', () => api.providers().length === 2);
    const known = api.providers();
    const command = await enter('command');
    const second = await enter('workers');
    await until('the api sees a process that has not said', () => api.providers().length === 0);
    second.announce(['vendor', 'other']);
    await until('the api knows what both ask', () => api.providers().join() === 'vendor');
    await second.stop();
    await until('the api knows that one has left', () => api.providers().length === 2);
    expect(api.providers()).toEqual(known);
    for (const leases of [command, first, api]) await leases.stop();
  });
});
