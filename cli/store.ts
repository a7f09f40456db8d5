import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { beginEpoch } from '../commands/epochs/epochs.ts';
import { loadConfig } from '../platform/config.ts';
import { DumpError, dumpTo, loadFrom } from '../platform/dump.ts';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../platform/log.ts';
import { print } from './print.ts';
import { commandContext, Refused, withRuntime } from './session.ts';

/** Adds `doorplate store new-epoch`, `dump` and `load`. */
export const addStoreCommands = (program: Command): void => {
  const store = program.command('store').description('the event store');
  store
    .command('dump <folder>')
    .description('copy what a backup has to hold to a new folder; the master key is not in it')
    .option('--json', 'print JSON', false)
    .action(async (folder: string, { json }: { json: boolean }) => {
      makeNewFolder(folder);
      print((await withDatabase('join', (url) => dumpTo(url, folder))).rows, json);
    });
  store
    .command('load <folder>')
    .description('fill an empty database from a dump, while no service runs')
    .option('--json', 'print JSON', false)
    .action(async (folder: string, { json }: { json: boolean }) => {
      print((await withDatabase('own', (url) => loadFrom(url, folder))).rows, json);
    });
  store
    .command('new-epoch')
    .description(
      'a step of every restore, before the service starts: cursors of before go on from the end of the backup',
    )
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withRuntime(async ({ store, clock }) => {
        const begun = await beginEpoch(store, commandContext(clock));
        if (!begun.ok) throw new Refused('the event store is empty: restore it first');
        const { epoch_id, after } = begun.value;
        print({ epoch_id, after: after.toString() }, json);
      }),
    );
};

const makeNewFolder = (folder: string): void => {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    throw new Refused(`the folder ${folder} cannot be made: ${(error as Error).message}`);
  }
};

/** Opens only the database: runs no migration and creates no key. */
const withDatabase = async <T>(mode: 'own' | 'join', work: (url: string) => Promise<T>): Promise<T> => {
  const { DATABASE_URL, DATA_DIR } = loadConfig(process.env);
  const log = createLogger({ level: process.env.LOG_LEVEL ?? 'warn', destination: 'stderr' });
  const postgres = DATABASE_URL
    ? null
    : await startEmbeddedPostgres({ dataDir: resolve(DATA_DIR), log, mode });
  try {
    return await work(DATABASE_URL ?? (postgres?.url as string));
  } catch (error) {
    throw error instanceof DumpError ? new Refused(error.message) : error;
  } finally {
    await postgres?.stop();
  }
};
