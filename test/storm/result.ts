import type { Client } from './client.ts';
import { type InjectedFault, REQUEST_KINDS, recoveries } from './observations.ts';
import type { StormOptions } from './options.ts';
import type { StormProcess } from './processes.ts';
import { machineName, type StormResult } from './report.ts';
import type { Violations } from './violations.ts';

interface Findings {
  readonly client: Client;
  readonly violations: Violations;
  readonly processes: readonly StormProcess[];
  readonly injected: readonly InjectedFault[];
  readonly loadEndedAt: number;
  readonly totals: StormResult['totals'];
  readonly peaks: StormResult['memory'];
}

/** Sums up a storm. */
export const resultOf = ({ minutes, seed, eventStoreUrl }: StormOptions, findings: Findings): StormResult => {
  const { client, violations, processes, injected, loadEndedAt, totals, peaks } = findings;
  const count = (kind: string, outcome: string): number =>
    client.observations.filter((one) => one.kind === kind && one.outcome === outcome).length;
  const kinds = REQUEST_KINDS.map((kind) => {
    const [success, unavailable, cut] = ['success', 'unavailable', 'cut'].map((outcome) =>
      count(kind, outcome),
    );
    return [kind, { success, unavailable, cut }];
  });
  const names = [...new Set(injected.map(({ name }) => name))];
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: machineName(),
    store: eventStoreUrl === undefined ? 'PostgreSQL' : 'EventStoreDB',
    seed,
    minutes,
    faults: Object.fromEntries(
      names.map((name) => [name, injected.filter((one) => one.name === name).length]),
    ),
    requests: Object.fromEntries(kinds),
    totals,
    recoveries: recoveries(client.observations, injected, loadEndedAt),
    readySeconds: Object.fromEntries(names.map((name) => [name, slowestReady(injected, name)])),
    servedSeconds: Object.fromEntries(names.flatMap((name) => slowestServed(injected, name))),
    memory: peaks,
    violations: violations.found,
    violationCount: violations.count(),
    logs:
      violations.count() === 0
        ? {}
        : Object.fromEntries(processes.map((one) => [one.name, one.lastLogLines()])),
  };
};

const slowestReady = (injected: readonly InjectedFault[], name: string): number | null => {
  const times = injected
    .filter((one) => one.name === name)
    .map(({ readyAt, liftedAt }) => (readyAt === null ? null : Math.round((readyAt - liftedAt) / 100) / 10));
  return times.includes(null) ? null : Math.max(...(times as number[]));
};

const slowestServed = (injected: readonly InjectedFault[], name: string): [string, number][] => {
  const times = injected.flatMap((one) =>
    one.name !== name || one.servedAt === null ? [] : one.servedAt - one.liftedAt,
  );
  return times.length === 0 ? [] : [[name, Math.round(Math.max(...times) / 100) / 10]];
};
