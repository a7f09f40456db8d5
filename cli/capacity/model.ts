/** What traffic needs, from what its operations cost: pure, and linear but for whole processes. */
import type { Figures, GroupName, Kind, UnitCost } from './figures.ts';
import { GROUPS, KINDS } from './figures.ts';

/** Traffic of a day. */
export interface Traffic {
  readonly lookups: number;
  readonly visits: number;
  readonly reveals: number;
  /** Webhook endpoints of all partners; without one nothing is sent. */
  readonly endpoints: number;
  /** Share of lookups and reveals whose address has no result yet. */
  readonly newShare: number;
  /** Endpoints that each visit and each reveal is sent to. */
  readonly sends: number;
}

/** PostgreSQL alone, or a cluster of three EventStoreDB nodes beside it. */
export type Store = 'postgresql' | 'eventstoredb';

export const PEAK = 4;
export const HEADROOM = 0.6;
export const STEPS = [1, 10, 100, 1_000] as const;
const DAY_SECONDS = 86_400;
const NODES = 3;
/** Fewest processes where a machine may fail. */
const AT_LEAST = { postgresql: 1, eventstoredb: 2 } as const;

/** Days for which the rows and events of each kind are kept (docs/runbook.md, Size of the data). */
const KEPT_DAYS: Readonly<Record<Kind, number>> = {
  saved_lookup: 1,
  new_lookup: 400,
  visit: 30,
  reveal: 30,
  delivery: 90,
};

export interface Needs {
  readonly store: Store;
  /** Operations a second in the busiest hour. */
  readonly peak: Readonly<Record<Kind, number>>;
  /** Busy cores in the busiest hour; of `eventstoredb`, those of each node. */
  readonly cores: UnitCost['cpu'];
  /** `all`: one process of both roles, instead of the others. */
  readonly processes: { readonly all: number; readonly api: number; readonly workers: number };
  /** Bytes of all processes, of PostgreSQL without the system's page cache, and of each node. */
  readonly memory: { readonly processes: number; readonly postgresql: number; readonly node: number };
  /** Bytes that PostgreSQL's disk, and each node's, take up a day before anything expires. */
  readonly disk_a_day: { readonly postgresql: number; readonly node: number };
  /** Bytes on both once as much expires as comes. */
  readonly disk_kept: { readonly postgresql: number; readonly node: number };
  /** Bytes. */
  readonly wal_a_day: number;
  readonly connections: number;
  /** Events a second in the busiest hour: all, those of each group, and those that webhooks are made of. */
  readonly events: number;
  readonly applied: Readonly<Record<GroupName, number>>;
  readonly fanned_out: number;
}

/** Returns the operations of a day. */
export function operationsOf({
  lookups,
  visits,
  reveals,
  endpoints,
  newShare,
  sends,
}: Traffic): Readonly<Record<Kind, number>> {
  return {
    saved_lookup: lookups * (1 - newShare),
    new_lookup: (lookups + reveals) * newShare,
    visit: visits,
    reveal: reveals,
    delivery: endpoints === 0 ? 0 : (visits + reveals) * sends,
  };
}

/** Returns what `times` the traffic needs. */
export function needsOf(figures: Figures, store: Store, traffic: Traffic, times: number): Needs {
  const day = operationsOf(traffic);
  const peakOf = (kind: Kind): number => (day[kind] * times * PEAK) / DAY_SECONDS;
  const sum = (of: (kind: Kind, cost: UnitCost) => number): number =>
    KINDS.reduce((total, kind) => total + of(kind, figures.kinds[kind]), 0);
  const atPeak = (of: (cost: UnitCost) => number): number => sum((kind, cost) => peakOf(kind) * of(cost));
  const aDay = (of: (cost: UnitCost) => number): number => sum((kind, cost) => day[kind] * times * of(cost));
  const kept = (of: (cost: UnitCost) => number): number =>
    sum((kind, cost) => day[kind] * times * KEPT_DAYS[kind] * of(cost));
  const busy = (role: keyof UnitCost['cpu']): number => atPeak(({ cpu }) => cpu[role] / 1e6);

  const { api, workers } = figures.processes;
  const processes = processesOf(busy('api'), busy('workers'), AT_LEAST[store]);
  const count = { api: processes.api + processes.all, workers: processes.workers + processes.all };
  const connections = count.api * api.connections + count.workers * workers.connections;
  const inLog = ({ log_bytes }: UnitCost): number => log_bytes;
  const inTables = ({ table_bytes }: UnitCost): number => table_bytes;
  const inDatabase = store === 'postgresql' ? (cost: UnitCost) => inLog(cost) + inTables(cost) : inTables;
  const onNode = store === 'postgresql' ? () => 0 : inLog;
  const ofGroup = (group: GroupName): number => atPeak(({ applied }) => applied[group]);
  return {
    store,
    peak: record(KINDS, peakOf),
    cores: {
      api: busy('api') + count.api * api.rest_cores,
      workers: busy('workers') + count.workers * workers.rest_cores,
      postgresql: busy('postgresql') + figures.postgresql.rest_cores,
      eventstoredb: busy('eventstoredb'),
    },
    processes,
    memory: {
      processes:
        processes.api * api.memory_bytes +
        processes.workers * workers.memory_bytes +
        processes.all * Math.max(api.memory_bytes, workers.memory_bytes),
      postgresql: figures.postgresql.memory_bytes + connections * figures.postgresql.bytes_a_connection,
      node: figures.node_memory_bytes,
    },
    disk_a_day: { postgresql: aDay(inDatabase), node: aDay(onNode) },
    disk_kept: { postgresql: kept(inDatabase), node: kept(onNode) },
    wal_a_day: aDay(({ wal_bytes }) => wal_bytes),
    connections,
    events: atPeak(({ events }) => events),
    applied: record(GROUPS, ofGroup),
    fanned_out: traffic.endpoints === 0 ? 0 : peakOf('visit') + peakOf('reveal'),
  };
}

/** One process of both roles suffices where its core does, except where a machine may fail. */
function processesOf(api: number, workers: number, least: number): Needs['processes'] {
  if (least === 1 && api + workers <= HEADROOM) return { all: 1, api: 0, workers: 0 };
  const forCores = (cores: number): number => Math.max(least, Math.ceil(cores / HEADROOM));
  return { all: 0, api: forCores(api), workers: forCores(workers) };
}

const record = <K extends string, V>(keys: readonly K[], of: (key: K) => V): Record<K, V> =>
  Object.fromEntries(keys.map((key) => [key, of(key)])) as Record<K, V>;

/** Machines of EventStoreDB. */
export const nodesOf = (store: Store): number => (store === 'eventstoredb' ? NODES : 0);
