import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Figures, figuresSchema, KINDS, scaledTo } from '../../cli/capacity/figures.ts';
import { breaksOf, installationsOf, limitsOf, type Settings } from '../../cli/capacity/limits.ts';
import { HEADROOM, needsOf, operationsOf, PEAK, type Traffic } from '../../cli/capacity/model.ts';
import shipped from '../../cli/capacity/shipped.json' with { type: 'json' };
import { CONDITIONS } from '../../operations/conditions.ts';
import { loadConfig } from '../../platform/config/config.ts';

const FIGURES = figuresSchema.parse(shipped.postgresql);
const SETTINGS: Settings = { ...loadConfig({}), max_connections: 100 };
const QUIET: Traffic = { lookups: 0, visits: 0, reveals: 0, endpoints: 0, newShare: 0, sends: 1 };
const BUSY: Traffic = { lookups: 1e6, visits: 2e5, reveals: 5e3, endpoints: 20, newShare: 0.05, sends: 1 };

/** Figures in which a visit alone costs something: this many microseconds in the api. */
const visitsCosting = (api: number): Figures => {
  const nothing = {
    cpu: { api: 0, workers: 0, postgresql: 0, eventstoredb: 0 },
    log_bytes: 0,
    table_bytes: 0,
    wal_bytes: 0,
    events: 0,
    applied: { lookups: 0, visits: 0, webhooks: 0 },
  };
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, nothing])) as Figures['kinds'];
  const visit = {
    ...nothing,
    cpu: { ...nothing.cpu, api },
    events: 1,
    applied: { ...nothing.applied, visits: 1 },
  };
  return { ...FIGURES, kinds: { ...kinds, visit } };
};

/** Visits a day that are this many a second at the peak. */
const visitsAtPeak = (perSecond: number): number => (perSecond * 86_400) / PEAK;

const traffics = fc.record({
  lookups: fc.nat(1e8),
  visits: fc.nat(1e8),
  reveals: fc.nat(1e7),
  endpoints: fc.nat(1_000),
  newShare: fc.double({ min: 0, max: 1, noNaN: true }),
  sends: fc.nat(5),
});

describe('the operations of a day', () => {
  it('send each visit and each reveal to the given number of endpoints', () => {
    const { delivery } = operationsOf({ ...QUIET, visits: 10, reveals: 3, endpoints: 4, sends: 2 });
    expect(delivery).toBe(26);
  });

  it('have no deliveries without endpoints', () => {
    expect(operationsOf({ ...BUSY, endpoints: 0 }).delivery).toBe(0);
  });

  it('enrich the share of lookups and reveals whose address is new', () => {
    const operations = operationsOf({ ...QUIET, lookups: 100, reveals: 20, newShare: 0.1 });
    expect(operations).toMatchObject({ saved_lookup: 90, new_lookup: 12, reveal: 20 });
  });
});

describe('the needs of traffic', () => {
  it('grow with the traffic: bytes and rates as it does, processes and connections never less', () => {
    fc.assert(
      fc.property(traffics, fc.constantFrom('postgresql', 'eventstoredb'), (traffic, store) => {
        const [once, tenfold] = [1, 10].map((times) => needsOf(FIGURES, store, traffic, times));
        if (once === undefined || tenfold === undefined) throw new Error('there are two');
        expect(tenfold.wal_a_day).toBeCloseTo(once.wal_a_day * 10, -3);
        expect(tenfold.disk_a_day.postgresql).toBeCloseTo(once.disk_a_day.postgresql * 10, -3);
        expect(tenfold.events).toBeCloseTo(once.events * 10, 3);
        expect(tenfold.cores.postgresql).toBeGreaterThanOrEqual(once.cores.postgresql);
        expect(tenfold.connections).toBeGreaterThanOrEqual(once.connections);
        expect(tenfold.memory.processes).toBeGreaterThanOrEqual(once.memory.processes);
      }),
    );
  });

  it('are one process of both roles until its core is used to the headroom, and then one of each', () => {
    const figures = visitsCosting(1_000);
    const at = (perSecond: number) =>
      needsOf(figures, 'postgresql', { ...QUIET, visits: visitsAtPeak(perSecond) }, 1).processes;
    expect(at(HEADROOM * 1_000 - 1)).toEqual({ all: 1, api: 0, workers: 0 });
    expect(at(HEADROOM * 1_000 + 1)).toEqual({ all: 0, api: 2, workers: 1 });
  });

  it('are two processes of each role beside a cluster, where a machine may fail', () => {
    expect(needsOf(FIGURES, 'eventstoredb', QUIET, 1).processes).toEqual({ all: 0, api: 2, workers: 2 });
  });

  it("keep the log on the cluster's nodes and the tables in PostgreSQL", () => {
    const [alone, cluster] = (['postgresql', 'eventstoredb'] as const).map(
      (store) => needsOf(FIGURES, store, BUSY, 1).disk_a_day,
    );
    expect(alone?.node).toBe(0);
    expect((cluster?.postgresql ?? 0) + (cluster?.node ?? 0)).toBeCloseTo(alone?.postgresql ?? 0);
  });
});

describe('what ends first', () => {
  it('is the rate of captures where visits alone pass it', () => {
    const traffic = { ...QUIET, visits: visitsAtPeak(SETTINGS.CAPTURES_PER_SECOND / 5) };
    const [first] = breaksOf(visitsCosting(1), 'postgresql', traffic, SETTINGS);
    expect(first?.limit.name).toBe('CAPTURES_PER_SECOND (200)');
    expect(first?.at).toBeCloseTo(5);
  });

  it('is the one process where its core is used up sooner', () => {
    const traffic = { ...QUIET, visits: visitsAtPeak(SETTINGS.CAPTURES_PER_SECOND / 5) };
    const [first] = breaksOf(visitsCosting(10_000), 'postgresql', traffic, SETTINGS);
    expect(first?.limit.name).toBe('one process with both roles');
  });

  it('is nothing without traffic', () => {
    expect(breaksOf(FIGURES, 'postgresql', QUIET, SETTINGS)).toEqual([]);
  });

  it('needs as many installations as a group of projections needs times of one process', () => {
    const figures = {
      ...visitsCosting(1),
      group_events_per_second: 100,
      appends_per_second: 1e6,
      fanned_out_per_second: 1e6,
    };
    const traffic = { ...QUIET, visits: visitsAtPeak(HEADROOM * 100 * 2.5) };
    const limits = limitsOf(figures, 'postgresql', traffic, SETTINGS);
    expect(installationsOf(limits, needsOf(figures, 'postgresql', traffic, 1))).toBe(3);
  });

  it('is told by metrics, alerts and conditions that exist', () => {
    const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const [runbook, alerts, status] = [
      read('docs/runbook.md'),
      read('deploy/prometheus/alerts.yml'),
      read('cli/operations/status.ts') + read('cli/operations/state.ts'),
    ];
    const texts = (['postgresql', 'eventstoredb'] as const)
      .flatMap((store) => limitsOf(FIGURES, store, BUSY, SETTINGS))
      .flatMap(({ seen, remedy }) => [seen, remedy])
      .join('\n');
    const all = (pattern: RegExp) => [...new Set([...texts.matchAll(pattern)].map(([, name = '']) => name))];
    const metrics = all(/\b(doorplate_(?!nodejs)[a-z_]+?)(?:_count)?\b/g);
    expect(metrics.length).toBeGreaterThan(3);
    const missing = [
      ...metrics.filter((name) => !runbook.includes(name)),
      ...all(/\b(doorplate_nodejs\w+)/g).filter((name) => !alerts.includes(name)),
      ...all(/\b(Doorplate[A-Z]\w+)/g).filter((name) => !alerts.includes(`alert: ${name}\n`)),
      ...all(/condition (\w+)/g).filter((code) => !CONDITIONS.some((one) => one.code === code)),
      ...all(/status: "([^"]+)"/g).filter((title) => !status.includes(`'${title}'`)),
    ];
    expect(missing).toEqual([]);
  });
});

describe('figures of another store', () => {
  it('are slower in the ratio in which the machine is slower on PostgreSQL', () => {
    const half = { ...FIGURES, kinds: { ...FIGURES.kinds } };
    for (const kind of KINDS) {
      const { cpu, ...rest } = FIGURES.kinds[kind];
      const doubled = {
        api: cpu.api * 2,
        workers: cpu.workers * 2,
        postgresql: cpu.postgresql * 2,
        eventstoredb: 0,
      };
      half.kinds[kind] = { ...rest, cpu: doubled };
    }
    const scaled = scaledTo(half, FIGURES, FIGURES);
    expect(scaled.kinds.visit.cpu.api).toBeCloseTo(FIGURES.kinds.visit.cpu.api * 2);
    expect(scaled.appends_per_second).toBeCloseTo(FIGURES.appends_per_second / 2);
    expect(scaled.kinds.visit.log_bytes).toBe(FIGURES.kinds.visit.log_bytes);
  });
});
