import pg from 'pg';
import pino from 'pino';
import type { CommandContext } from '../../commands/handle.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { Tail } from '../../event-store/tail.ts';
import { createProgress, type Progress } from '../../projections/progress.ts';
import type { Projection } from '../../projections/projection.ts';
import { type TestDatabase, testDatabase, testPool } from './database.ts';
import { startProjections } from './leading.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';

/** A database for the test, and what a test below the HTTP level needs. */
export interface TestStack {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly tail: Tail;
  readonly progress: Progress;
  readonly clock: ManualClock;
  readonly log: pino.Logger;
  /** The time and trace of a command given now. */
  context(): CommandContext;
  /** Runs projections until the test ends or stops them. */
  project(projections: readonly Projection[]): { stop(): Promise<void> };
  /** Waits until the projections have applied the whole store. */
  caughtUp(projections: readonly Projection[]): Promise<void>;
  rows(query: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Opens a session of its own and runs these statements in it; `close` ends it. */
  session(statements?: string): Promise<pg.Client>;
  close(): Promise<void>;
}

const START = Date.parse('2026-03-01T12:00:00.000Z');

/** `database`: replaces a new one; it is dropped with the stack all the same. */
export const startTestStack = async (database?: TestDatabase): Promise<TestStack> => {
  const { url, drop } = database ?? (await testDatabase());
  const pool = testPool({ url }, 5);
  const clock = manualClock(START);
  const now = () => clock.now();
  const store = createPostgresEventStore({ url, now });
  const progress = createProgress({ url, pool });
  const log = pino({ level: 'silent' });
  const tail = new Tail({ store, now, log });
  const running: { stop(): Promise<void> }[] = [];
  const sessions: pg.Client[] = [];
  return {
    url,
    pool,
    store,
    tail,
    progress,
    clock,
    log,
    context: () => ({ correlationId: 'a-request', causationId: 'a-request', at: clock.now() }),
    project: (projections) => {
      const runner = startProjections(projections, { tail, url, pool, progress, clock, log });
      running.push(runner);
      return runner;
    },
    caughtUp: async (projections) => {
      const names = projections.map((projection) => projection.name);
      const reached = await progress.reached(names, await store.head(), 20_000);
      if (!reached) throw new Error(`the projections ${names.join(', ')} did not catch up`);
    },
    rows: async (query, values = []) => (await pool.query(query, values)).rows,
    session: async (statements = '') => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      sessions.push(client);
      await client.query(statements);
      return client;
    },
    close: async () => {
      for (const session of sessions) await session.end();
      for (const runner of running) await runner.stop();
      await tail.close();
      await store.close();
      await progress.close();
      await pool.end();
      await drop();
    },
  };
};
