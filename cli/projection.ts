import type { Command } from 'commander';
import { sweepToEnd } from '../bin/retention.ts';
import { allProjections, projectionGroups } from '../projections/all.ts';
import { rebuild } from '../projections/rebuild.ts';
import { listProjectionStates, readLeaders } from '../queries/consumers.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

const NAMES = allProjections.map(({ name }) => name);
const SAVED_MS = 1_000;

const groupOf = (projection: string): string =>
  Object.values(projectionGroups).find(({ projections }) =>
    projections.some(({ name }: { readonly name: string }) => name === projection),
  )?.name ?? '';

const listed = async ({ pool, store, progress }: Session) => {
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
};

const rebuildNamed = async (
  session: Session,
  isWanted: (name: string) => boolean,
  name: string | undefined,
  json: boolean,
): Promise<void> => {
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
};

/** Adds `doorplate projection list|rebuild`. */
export const addProjectionCommands = (program: Command): void => {
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
};

let hasPrintedHeader = false;
const onWaiting = (): void => {
  if (!hasPrintedHeader)
    process.stderr.write('doorplate: somebody reads the old tables: waiting for that to end, to switch\n');
  hasPrintedHeader = true;
};
