import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { StormPostgres } from '../postgres.ts';
import type { Fault } from './fault.ts';

const DOWN_MS = 3_000;
const REFUSED_MS = 3_000;
const SLOW_MS = 10_000;
const DELAY_MS = 100;
const LOCKED_MS = 9_000;

/** Stops PostgreSQL, cuts it off and slows it down. */
export const postgresFaults = (postgres: StormPostgres): Fault[] => [
  ...(['SIGINT', 'SIGQUIT'] as const).map((signal) => ({
    name: `PostgreSQL stopped for 3 s (${signal === 'SIGINT' ? 'fast' : 'immediate'})`,
    run: async () => {
      await postgres.stop(signal);
      await pause(DOWN_MS);
      await postgres.start();
    },
  })),
  {
    name: 'connections to PostgreSQL cut',
    run: async () => postgres.proxy.cut(),
  },
  {
    name: 'PostgreSQL unreachable for 3 s',
    run: async () => {
      await postgres.proxy.refuse();
      await pause(REFUSED_MS);
      await postgres.proxy.accept();
    },
  },
  {
    name: 'PostgreSQL 100 ms away for 10 s',
    run: async () => {
      postgres.proxy.delay(DELAY_MS);
      await pause(SLOW_MS);
      postgres.proxy.delay(0);
    },
  },
];

/** Locks the event log in PostgreSQL, as a long transaction of an operator would. */
export const lockedLogFault = (postgres: StormPostgres): Fault => ({
  name: 'event log locked for 9 s',
  run: async () => {
    const client = new pg.Client({ connectionString: postgres.directUrl });
    await client.connect();
    try {
      await client.query('begin');
      await client.query('lock table eventlog.event in exclusive mode');
      await pause(LOCKED_MS);
    } finally {
      await client.end();
    }
  },
});
