import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { compared, median } from '../support/statistics.ts';
import { installPeers, versionOf } from './install.ts';
import type { Done, Side, Work } from './serve-events.ts';

const START_MS = 120_000;
const SLACK_MS = 130_000;
/** Emmett counts some thousand a second. */
const MOST_EVENTS = 20_000;

interface Compared {
  readonly work: Work;
  readonly unit: string;
  readonly atLeast: number | null;
  readonly of: string;
}

/** Each work, with its unit, its target, and what it is. */
const WORKS: readonly Compared[] = [
  { work: 'projection', unit: ' events/s', atLeast: 3, of: 'events counted by stream into a table' },
  { work: 'appends', unit: '/s', atLeast: 3, of: 'appends of one event, ten to a stream, 64 callers' },
  { work: 'conflicts', unit: '/s', atLeast: null, of: 'appends refused for a wrong expected revision' },
  { work: 'reads', unit: '/s', atLeast: null, of: 'reads of a stream of ten events' },
];

interface Measured extends Done {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

/** The event store's port on PostgreSQL, and on an EventStoreDB where one is given, against Emmett on PostgreSQL. */
export const eventStorePeers: Row = {
  name: 'event-store',
  run: async (bench) => {
    await installPeers();
    const events = Math.min(bench.effort.events / 10, MOST_EVENTS);
    const emmett = await start(bench, { store: 'emmett', env: {}, events });
    const sides = [{ name: '', side: await start(bench, { store: 'doorplate', env: {}, events }) }];
    if (bench.eventStoreUrl !== undefined) {
      const env = { EVENTSTORE_URL: bench.eventStoreUrl };
      sides.push({ name: ' on EventStoreDB', side: await start(bench, { store: 'doorplate', env, events }) });
    }
    const lines: Line[] = [];
    for (const work of WORKS) {
      const warmUp = bench.effort.warmUpSeconds;
      for (const measure of [emmett, ...sides.map(({ side }) => side)]) await measure(work.work, warmUp);
      const ours = sides.map((): Measured[] => []);
      const theirs: Measured[] = [];
      for (let round = 0; round < bench.effort.rounds; round += 1) {
        for (const [nth, { side }] of sides.entries())
          ours[nth]?.push(await side(work.work, bench.effort.seconds / 2));
        theirs.push(await emmett(work.work, bench.effort.seconds / 2));
      }
      for (const [nth, { name }] of sides.entries()) {
        // The aims are those of PostgreSQL.
        const aimed = name === '' ? work : { ...work, atLeast: null };
        lines.push(toLine(`${work.work}${name} to Emmett`, aimed, ours[nth] ?? [], theirs));
      }
    }
    return lines;
  },
};

const start = async (bench: Bench, side: Omit<Side, 'folder'>) => {
  const folder = makeTestFolder();
  bench.say(`filling ${side.store}'s log with ${side.events} events`);
  const child = startChild('peers/serve-events.ts', { ...side, folder });
  bench.defer(async () => {
    await child.end();
    await removeDataFolder(folder);
  });
  const { pid } = await child.next<{ pid: number }>(START_MS);
  const cpu = (): number => cpuOf(child.pid) + cpuOfFamily(pid);
  return async (work: Work, seconds: number): Promise<Measured> => {
    const before = cpu();
    child.say({ work, seconds });
    const done = await child.next<Done>(seconds * 1_000 + SLACK_MS);
    return {
      ...done,
      perSecond: done.done / done.seconds,
      cpuMicros: ((cpu() - before) * 1e6) / done.done,
    };
  };
};

const toLine = (
  row: string,
  { work, unit, atLeast, of }: Compared,
  ours: readonly Measured[],
  theirs: readonly Measured[],
): Line => {
  const rates = (some: readonly Measured[]) => some.map(({ perSecond }) => perSecond);
  const micros = (some: readonly Measured[]) => median(some.map(({ cpuMicros }) => cpuMicros)).toFixed(0);
  const missed = Math.max(...theirs.map(({ missed }) => missed));
  const notes = {
    projection: `Emmett's projector runs a statement and saves its position for each event, in batches of 500 without a pause that it allows to leave out; it orders by transaction and remembers a position alone: ${missed} events of its log were not counted`,
    appends:
      'Emmett, with 32 connections, writes each append in a transaction of its own, does not recognise an append that is sent again, and notifies nobody',
    conflicts:
      'Emmett does not say at which revision the stream is, and ignores "no stream" and "exists": the number is given',
    reads: 'Emmett reads without expiry of events',
  };
  return {
    row,
    ...compared(
      { of, values: rates(ours) },
      { of: versionOf('@event-driven-io/emmett-postgresql'), values: rates(theirs) },
      unit,
    ),
    target: atLeast === null ? null : { atLeast },
    notes: [`CPU of process and PostgreSQL, each: ${micros(ours)} µs to ${micros(theirs)} µs`, notes[work]],
  };
};
