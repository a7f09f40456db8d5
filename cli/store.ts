import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { sweepToEnd } from '../bin/retention.ts';
import { beginEpoch } from '../commands/epochs/epochs.ts';
import { loadConfig } from '../platform/config/config.ts';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { DumpError, dumpTo, loadFrom } from '../platform/postgres/dump.ts';
import { migrate } from '../platform/postgres/migrate.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import { allProjections, projectionGroups } from '../projections/all.ts';
import { rebuild } from '../projections/rebuild.ts';
import { listProjectionStates, readLeaders } from '../queries/consumers.ts';
import { print } from './print.ts';
import { commandContext, Refused, type Session, withRuntime, withSession } from './session.ts';

const NAMES = allProjections.map(({ name }) => name);
const SAVED_MS = 1_000;

const groupOf = (projection: string): string =>
  Object.values(projectionGroups).find(({ projections }) =>
    projections.some(({ name }: { readonly name: string }) => name === projection),
  )?.name ?? '';

async function listed({ pool, store, progress }: Session) {
  const head = await store.head();
  // Checkpoints are saved with a delay unless a caller waits for them.
  await progress.reached(NAMES, head, SAVED_MS);
  const known = new Map((await listProjectionStates(pool)).map((row) => [row.name, row]));
  const leaders = await readLeaders(pool);
  return allProjections.map(({ name, tables }) => {
    const position: string | null = known.get(name)?.position ?? null;
    const stopped_by: string | null = known.get(name)?.stopped_by ?? null;
    const behind = head !== null && (position === null || BigInt(position) < head);
    const state = stopped_by ? 'stopped' : behind ? 'behind' : 'current';
    return {
      name,
      state,
      position,
      head: head?.toString() ?? null,
      tables: tables.join(' '),
      group: groupOf(name),
      leader: leaders.get(groupOf(name)) ?? null,
      stopped_by,
    };
  });
}

async function rebuildNamed(
  session: Session,
  isWanted: (name: string) => boolean,
  name: string | undefined,
  json: boolean,
): Promise<void> {
  const { store, databaseUrl: url } = session;
  const projections = allProjections.filter((one) => isWanted(one.name));
  if (projections.length === 0) throw new Refused(`projection_not_found: ${name}`);
  // A killed sweep may have deleted streams without appending their expiry; only the current rows still list them.
  await sweepToEnd(session);
  const started = performance.now();
  const { events, position } = await rebuild({ store, url, projections, onWaiting });
  print(
    {
      rebuilt: projections.map((one) => one.name).join(' '),
      events,
      position: position?.toString() ?? null,
      seconds: Math.round(performance.now() - started) / 1_000,
    },
    json,
  );
}

/** Adds `doorplate projection list|rebuild`. */
export function addProjectionCommands(program: Command): void {
  const projection = program.command('projection').description('read models');

  projection
    .command('list')
    .description('how far each read model is, and which process leads it')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withSession(async (session) => print(await listed(session), json)),
    );

  projection
    .command('rebuild [name]')
    .description('build read models anew beside the ones in use, and switch')
    .option('--all', 'all of them, in one pass', false)
    .option('--json', 'print JSON', false)
    .action((name: string | undefined, { all, json }: { all: boolean; json: boolean }, command: Command) => {
      if ((name === undefined) !== all) command.error('name one projection, or --all', { exitCode: 2 });
      return withSession((session) => rebuildNamed(session, (one) => all || one === name, name, json));
    });
}

let hasPrintedHeader = false;
function onWaiting(): void {
  if (!hasPrintedHeader)
    process.stderr.write('doorplate: somebody reads the old tables: waiting for that to end, to switch\n');
  hasPrintedHeader = true;
}

/** Adds `doorplate store new-epoch`, `dump` and `load`. */
export function addStoreCommands(program: Command): void {
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
    .command('make-tables')
    .description('make the tables in an empty database, for a restore by hand')
    .option('--json', 'print JSON', false)
    .action(async ({ json }: { json: boolean }) =>
      print({ migrations: await withDatabase('own', (url) => migrate(url)) }, json),
    );
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
}

function makeNewFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    throw new Refused(`the folder ${folder} cannot be made: ${(error as Error).message}`);
  }
}

/** Opens only the database: runs no migration and creates no key. */
async function withDatabase<T>(mode: 'own' | 'join', work: (url: string) => Promise<T>): Promise<T> {
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
}
