/** The capacity of an installation as JSON, and as a page for people. */
import { bytesText, countText, timeText } from '../../operations/texts.ts';
import { styled, table } from '../print.ts';
import { type Figures, KINDS, type Kind } from './figures.ts';
import { type Break, breaksOf, installationsOf, limitsOf, type Settings } from './limits.ts';
import { HEADROOM, type Needs, needsOf, nodesOf, PEAK, STEPS, type Store, type Traffic } from './model.ts';

/** Where figures come from. `scaled`: those of the bench machine, in the ratio of this machine to it. */
export type Source = 'calibrated' | 'shipped' | 'scaled';

export interface Measured {
  readonly figures: Figures;
  readonly source: Source;
}

interface Step extends Needs {
  readonly times: number;
  readonly installations: number;
}

export interface StoreReport extends Measured {
  readonly store: Store;
  readonly steps: readonly Step[];
  readonly breaks: readonly Break[];
}

export interface Report {
  readonly traffic: Traffic;
  readonly stores: readonly StoreReport[];
}

/** Returns what the traffic needs at each step, on each store. */
export function reportOf(
  traffic: Traffic,
  settings: Settings,
  measured: Readonly<Record<Store, Measured>>,
): Report {
  const stores = (['postgresql', 'eventstoredb'] as const).map((store): StoreReport => {
    const { figures } = measured[store];
    const limits = limitsOf(figures, store, traffic, settings);
    const steps = STEPS.map((times) => {
      const needs = needsOf(figures, store, traffic, times);
      return { times, ...needs, installations: installationsOf(limits, needs) };
    });
    return { ...measured[store], store, steps, breaks: breaksOf(figures, store, traffic, settings) };
  });
  return { traffic, stores };
}

/** Returns the report as `--json` prints it. */
export function jsonOf({ traffic, stores }: Report): object {
  return {
    traffic,
    assumptions: { peak_to_mean: PEAK, headroom: HEADROOM },
    stores: stores.map(({ store, source, figures, steps, breaks }) => ({
      store,
      figures: { source, how: HOW[source], ...figures },
      steps: steps.map(({ store: _, ...step }) => ({ ...step, how: 'calculated' })),
      breaks: breaks.map(({ at, limit: { name, from, seen, remedy } }) => ({
        at: Number(at.toPrecision(3)),
        name,
        from,
        seen,
        remedy,
      })),
    })),
  };
}

const HOW: Readonly<Record<Source, string>> = {
  calibrated: 'measured',
  shipped: 'measured',
  scaled: 'calculated',
};

/** Returns the report as text. */
export function pageOf({ traffic, stores }: Report): string {
  const { lookups, visits, reveals, endpoints, newShare, sends } = traffic;
  return [
    `${countText(lookups)} lookups, ${countText(visits)} visits and ${countText(reveals)} reveals a day, ${countText(endpoints)} webhook endpoints`,
    section('Assumed', [
      `the busiest hour has ${PEAK} times the mean of the day, and a core, or a measured limit, is planned to ${HEADROOM * 100} %;`,
      `${percent(newShare)} of lookups and reveals are of a new address (--new-percent); each visit and reveal is sent to ${endpoints === 0 ? 0 : sends} of the endpoints (--sends)`,
    ]),
    ...stores.map((report, nth) => storeText(report, stores.slice(0, nth))),
  ].join('\n\n');
}

const TITLES: Readonly<Record<Store, string>> = {
  postgresql: 'On PostgreSQL alone',
  eventstoredb: 'On an EventStoreDB cluster of three, with PostgreSQL for the read models',
};

const storeText = (report: StoreReport, before: readonly StoreReport[]): string =>
  [
    section(TITLES[report.store], [originOf(report)]),
    table(KINDS.map((kind) => unitRow(kind, report))),
    table(needRows(report)),
    section('What ends, in this order', breakLines(report.breaks, namesIn(before))),
  ].join('\n\n');

const section = (title: string, text: readonly string[]): string =>
  [styled('bold', title), ...text].join('\n');

function originOf({ source, figures: { measured_at, machine, store } }: StoreReport): string {
  const on = `${machine.cores} cores (${machine.cpu}), ${store}, ${timeText(new Date(measured_at))}`;
  if (source === 'calibrated') return `unit costs measured on this installation's machine: ${on}`;
  if (source === 'scaled')
    return `unit costs calculated: those of our bench machine, in the ratio of yours to it on PostgreSQL (${store})`;
  return `unit costs measured on our bench machine, not on yours (doorplate capacity --calibrate measures yours): ${on}`;
}

const NAMES: Readonly<Record<Kind, string>> = {
  saved_lookup: 'saved lookup',
  new_lookup: 'new lookup',
  visit: 'visit',
  reveal: 'reveal',
  delivery: 'delivery',
};

function unitRow(kind: Kind, { store, figures: { kinds } }: StoreReport): Record<string, string | number> {
  const { cpu, log_bytes, table_bytes, wal_bytes } = kinds[kind];
  return {
    'µs of CPU, bytes': NAMES[kind],
    api: Math.round(cpu.api),
    workers: Math.round(cpu.workers),
    PostgreSQL: Math.round(cpu.postgresql),
    ...(store === 'eventstoredb' && { EventStoreDB: Math.round(cpu.eventstoredb) }),
    log: Math.round(log_bytes),
    tables: Math.round(table_bytes),
    WAL: Math.round(wal_bytes),
  };
}

/** One column a step. */
function needRows({ store, steps, breaks }: StoreReport): Record<string, string>[] {
  const isCluster = nodesOf(store) > 0;
  const row = (name: string, of: (step: Step) => string): Record<string, string> => ({
    calculated: name,
    ...Object.fromEntries(steps.map((step) => [timesText(step.times), of(step)])),
  });
  const rate = (kind: Kind): Record<string, string> =>
    row(`${NAMES[kind]}s/s at the peak`.replace('ys/s', 'ies/s'), ({ peak }) => number(peak[kind]));
  const firstOf = ({ times }: Step): string => {
    const before = STEPS[STEPS.indexOf(times as (typeof STEPS)[number]) - 1] ?? 0;
    const first = breaks.find(({ at }) => at > before && at <= times);
    return first === undefined ? '-' : `(${breaks.indexOf(first) + 1})`;
  };
  return [
    ...KINDS.map(rate),
    row('api processes', ({ processes: { all, api } }) => (all > 0 ? '1, both roles' : countText(api))),
    row('workers processes', ({ processes: { all, workers } }) => (all > 0 ? '' : countText(workers))),
    row('cores: api', ({ cores }) => number(cores.api)),
    row('cores: workers', ({ cores }) => number(cores.workers)),
    row('cores: PostgreSQL', ({ cores }) => number(cores.postgresql)),
    ...(isCluster ? [row('cores: each EventStoreDB node', ({ cores }) => number(cores.eventstoredb))] : []),
    row('memory: processes', ({ memory }) => bytesText(memory.processes)),
    row('memory: PostgreSQL', ({ memory }) => bytesText(memory.postgresql)),
    ...(isCluster ? [row('memory: each EventStoreDB node', ({ memory }) => bytesText(memory.node))] : []),
    row('connections to PostgreSQL', ({ connections }) => countText(connections)),
    row('disk a day: PostgreSQL', ({ disk_a_day }) => bytesText(disk_a_day.postgresql)),
    row('disk at most, later: PostgreSQL', ({ disk_kept }) => bytesText(disk_kept.postgresql)),
    ...(isCluster
      ? [
          row('disk a day: each EventStoreDB node', ({ disk_a_day }) => bytesText(disk_a_day.node)),
          row('disk at most, later: each node', ({ disk_kept }) => bytesText(disk_kept.node)),
        ]
      : []),
    row('WAL a day', ({ wal_a_day }) => bytesText(wal_a_day)),
    row('installations', ({ installations }) => countText(installations)),
    row('ends first on the way', firstOf),
  ];
}

const namesIn = (reports: readonly StoreReport[]): Set<string> =>
  new Set(reports.flatMap(({ breaks }) => breaks.map(({ limit }) => limit.name)));

/** `explained`: names of limits that need no explanation again. */
const breakLines = (breaks: readonly Break[], explained: ReadonlySet<string>): string[] =>
  breaks.length === 0
    ? ['nothing, up to the last step']
    : breaks.flatMap(({ at, limit: { name, from, seen, remedy } }, nth) => {
        const like = breaks.findIndex(({ limit }) => limit.seen === seen && limit.remedy === remedy);
        const line = `(${nth + 1}) at ${timesText(at)}: ${name}; ${from}`;
        if (explained.has(name)) return [line];
        if (like < nth) return [line, `    seen and done: as (${like + 1})`];
        return [line, `    seen: ${seen}`, `    do: ${remedy}`];
      });

const timesText = (times: number): string => `${number(times)}×`;

/** Two figures that count. */
const number = (value: number): string =>
  value >= 100 ? countText(Math.round(value)) : String(Number(value.toPrecision(2)));

const percent = (share: number): string => `${number(share * 100)} %`;
