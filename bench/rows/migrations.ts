import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { systemClock } from '../../platform/clock/clock.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { MIGRATIONS, migrate } from '../../platform/postgres/migrate.ts';
import { migrationNames } from '../../platform/postgres/upgrade-path.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import type { Line, Row } from '../support/bench.ts';
import { fillOldLog } from '../support/old-log.ts';

/** The longest wait of an append for a migration, in milliseconds. */
const LIMIT_MS = 1_000;
const WRITERS = 4;
const CONTROL_MS = 10_000;
const log = { info: () => {}, warn: () => {}, error: () => {} };

/** Made-up migrations of a future release: how an index on the log is built, and how it must not be. */
const BESIDE = '-- No transaction\ncreate index concurrently event_type on eventlog.event (type);\n';
const COLUMN = "alter table eventlog.event add column origin text not null default 'here';\n";
const BLOCKING = 'create index event_type_again on eventlog.event (type);\n';

/**
 * The longest append while migrations run on a log of five million events (`--quick`: half a million) that an earlier
 * release began: those of this release, an index and a column made as migrations/README.md requires, and, for
 * comparison, an index built in a transaction.
 */
export const migrationsRow: Row = {
  name: 'migrations',
  run: async ({ effort, say }) => {
    const events = effort.saved * 5;
    const folder = makeTestFolder();
    const postgres = await startEmbeddedPostgres({ dataDir: folder, mode: 'join', log });
    try {
      const { url } = postgres;
      say(`making a log of ${events} events`);
      await fillOldLog(url, events);
      say('migrating');
      const { longestMs: before } = await whileAppending(url, () => pause(CONTROL_MS));
      const measured = {
        'the migrations of this release': await whileAppending(url, () => migrate(url)),
        'a column, and an index beside the appends': await migrateTo(url, { b: BESIDE, c: COLUMN }),
        'for comparison: an index in a transaction': await migrateTo(url, { d: BLOCKING }),
      };
      return Object.entries(measured).map(([name, { longestMs, tookMs, appends }]): Line => {
        const isComparison = name.startsWith('for comparison');
        return {
          row: `${name}, ${events.toLocaleString('en')} events`,
          ratio: longestMs / LIMIT_MS,
          target: isComparison ? null : { atMost: 1 },
          a: { of: 'longest append meanwhile', value: longestMs, unit: ' ms' },
          b: { of: 'limit', value: LIMIT_MS, unit: ' ms' },
          notes: [
            `took ${(tookMs / 1_000).toFixed(1)} s, ${appends} appends meanwhile`,
            `longest append of ${CONTROL_MS / 1_000} s without migrations: ${before.toFixed(0)} ms`,
          ],
        };
      });
    } finally {
      await postgres.stop();
      await removeDataFolder(folder);
    }
  },
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs made-up migrations after those of a database, in the order of their names. */
const migrateTo = async (url: string, files: Readonly<Record<string, string>>) => {
  const directory = mkdtempSync(join(tmpdir(), 'doorplate-migrations-'));
  try {
    for (const name of migrationNames(MIGRATIONS))
      writeFileSync(join(directory, `${name}.sql`), 'select 1;\n');
    for (const [name, sql] of Object.entries(files)) writeFileSync(join(directory, `9000_${name}.sql`), sql);
    return await whileAppending(url, () => migrate(url, { directory }));
  } finally {
    rmSync(directory, { recursive: true });
  }
};

interface Measured {
  readonly longestMs: number;
  readonly tookMs: number;
  readonly appends: number;
}

/** Appends without a pause during the work. */
const whileAppending = async (url: string, work: () => Promise<unknown>): Promise<Measured> => {
  const store = createPostgresEventStore({ url, now: systemClock.now, deadlineMs: 10 * 60_000 });
  let isOver = false;
  let longestMs = 0;
  let appends = 0;
  const write = async (): Promise<void> => {
    const stream = `bench-${uuid()}`;
    const metadata = { $correlationId: stream, $causationId: stream, at: new Date().toISOString() };
    for (let revision = -1; !isOver; revision += 1) {
      const event = { id: uuid(), type: 'bench.Appended.v1', data: { revision }, metadata };
      const begin = performance.now();
      await store.append(stream, revision < 0 ? 'no_stream' : revision, [event]);
      longestMs = Math.max(longestMs, performance.now() - begin);
      appends += 1;
    }
  };
  const writers = Array.from({ length: WRITERS }, write);
  await pause(500);
  const begin = performance.now();
  await work().finally(() => {
    isOver = true;
  });
  const tookMs = performance.now() - begin;
  await Promise.all(writers);
  await store.close();
  return { longestMs, tookMs, appends };
};
