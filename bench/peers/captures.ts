import pg from 'pg';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { startCluster } from '../support/cluster.ts';
import { load } from '../support/load.ts';
import type { LoadPlan } from '../support/load-plan.ts';
import { compared } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';
import { NoPeer } from './install.ts';
import { startUmami } from './umami.ts';

const CONNECTIONS = 64;
const START_MS = 60_000;
/** More than any run needs. */
const ADDRESSES = 1_000_000;

interface Measured {
  readonly perSecond: number;
  readonly cpuMicros: number;
  readonly bytes: number;
}

/** A service that takes visits. */
interface Side {
  readonly of: string;
  readonly plan: () => Pick<LoadPlan, 'requests' | 'port' | 'expect'>;
  /** Of the server and its PostgreSQL, in seconds. */
  readonly cpu: () => number;
  /** Of its database. */
  readonly url: string;
  /** Waits until the work of all visits is done. */
  readonly settled: () => Promise<void>;
  /** SQL that counts the visits. */
  readonly visits: string;
}

/** Visits from different addresses until they are durable, at full speed: Umami, and a bare route with one insert, beside ours. */
export const capturePeers: Row = {
  name: 'captures',
  run: async (bench) => {
    const doorplate = await startDoorplate(bench);
    const insert = await startInsert(bench);
    const umami = await startUmamiSide(bench);
    const sides = umami === null ? [doorplate, insert] : [doorplate, insert, umami];
    const measured = sides.map((): Measured[] => []);
    // Uncompiled code costs several times more.
    for (const side of sides) await measure(bench, side);
    for (let round = 0; round < bench.effort.rounds; round += 1)
      for (const [nth, side] of sides.entries()) measured[nth]?.push(await measure(bench, side));
    const [ours = [], ofInsert = [], ofUmami] = measured;
    return [
      ...(umami === null || ofUmami === undefined
        ? []
        : toLines('Umami', umami.of, { atLeast: 15 }, ours, ofUmami, WITHOUT_UMAMI)),
      ...toLines('one insert', insert.of, null, ours, ofInsert, WITHOUT_INSERT),
    ];
  },
};

const WITHOUT_UMAMI =
  'Umami keeps a session and a page view, and country, device and referrer of each; it seals no address, limits no visitor and no tracker, notifies nobody and orders nothing for followers. Its country comes from the same file, without cities';
const WITHOUT_INSERT =
  'The route with an insert knows no tracker, origin, limit or retention, seals nothing, and has no read model';

const startDoorplate = async (bench: Bench): Promise<Side> => {
  const product = await startCluster('all', 1, {});
  bench.defer(product.end);
  const tracker = await createTracker(product);
  return {
    of: 'POST /tracking/collect, 64 connections',
    plan: () => ({
      port: product.port,
      requests: { of: 'captures', tracker, first: bench.freshAddresses(ADDRESSES) },
      expect: 204,
    }),
    cpu: () => (product.meters.server?.() ?? 0) + (product.meters.PostgreSQL?.() ?? 0),
    url: product.url,
    settled: product.followed,
    visits: 'select count(*) as n from read.session',
  };
};

const startInsert = async (bench: Bench): Promise<Side> => {
  const folder = makeTestFolder();
  const child = startChild('durable-route.ts', { folder });
  bench.defer(async () => {
    await child.end();
    await removeDataFolder(folder);
  });
  const { port, pid, url } = await child.next<{ port: number; pid: number; url: string }>(START_MS);
  return {
    of: 'Fastify with one insert',
    plan: () => ({ port, requests: { of: 'inserts' }, expect: 204 }),
    cpu: () => cpuOf(child.pid) + cpuOfFamily(pid),
    url,
    settled: async () => undefined,
    visits: 'select count(*) as n from request',
  };
};

/** null: skipped, and said why. */
const startUmamiSide = async (bench: Bench): Promise<Side | null> => {
  try {
    const { version, port, url, website, meters } = await startUmami(bench);
    return {
      of: version,
      plan: () => ({
        port,
        requests: { of: 'visits', website, first: bench.freshAddresses(ADDRESSES) },
        expect: 200,
      }),
      cpu: () => (meters.server?.() ?? 0) + (meters.PostgreSQL?.() ?? 0),
      url,
      settled: async () => undefined,
      visits: 'select count(*) as n from website_event',
    };
  } catch (error) {
    if (!(error instanceof NoPeer)) throw error;
    bench.say(`Umami is SKIPPED: ${error.message}`);
    return null;
  }
};

const measure = async ({ effort }: Bench, side: Side): Promise<Measured> => {
  const before = { cpu: side.cpu(), ...(await databaseOf(side)) };
  const { warmUpSeconds, seconds } = effort;
  const loaded = await load({ ...side.plan(), connections: CONNECTIONS, warmUpSeconds, seconds });
  await side.settled();
  const after = { cpu: side.cpu(), ...(await databaseOf(side)) };
  const visits = after.visits - before.visits;
  // Visits that are under way when the load ends are durable too.
  if (visits < loaded.sent)
    throw new Error(`of ${loaded.sent} visits ${visits} are in the database of ${side.of}`);
  return {
    perSecond: loaded.perSecond,
    cpuMicros: ((after.cpu - before.cpu) * 1e6) / visits,
    bytes: (after.bytes - before.bytes) / visits,
  };
};

const databaseOf = async ({ url, visits }: Side): Promise<{ bytes: number; visits: number }> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select pg_database_size(current_database()) as bytes, (${visits}) as visits`,
    );
    return { bytes: Number(rows[0].bytes), visits: Number(rows[0].visits) };
  } finally {
    await client.end();
  }
};

const toLines = (
  peer: string,
  of: string,
  target: Line['target'],
  ours: readonly Measured[],
  theirs: readonly Measured[],
  without: string,
): Line[] => {
  const compare = (key: keyof Measured, what: string, unit: string) =>
    compared(
      { of: what, values: ours.map((one) => one[key]) },
      { of, values: theirs.map((one) => one[key]) },
      unit,
    );
  return [
    {
      row: `visits made durable, to ${peer}`,
      target,
      ...compare('perSecond', 'POST /tracking/collect, 64 connections', '/s'),
      notes: [without],
    },
    {
      row: `CPU of a visit, to ${peer}`,
      target: null,
      ...compare('cpuMicros', 'CPU a visit, PostgreSQL and read models included', ' µs'),
      notes: [],
    },
    {
      row: `database of a visit, to ${peer}`,
      target: null,
      ...compare('bytes', 'bytes a visit, log and read models', ' bytes'),
      notes: [],
    },
  ];
};
