import { Gauge, type Registry } from 'prom-client';

/** The state of the whole installation. */
export interface StateOfThings {
  readonly postgresql: boolean;
  readonly eventStore: boolean;
  /** Position of the last event; null: the log is empty, or the store unreachable. */
  readonly head: bigint | null;
  /** Positions of all consumers; null: not started. */
  readonly positions: readonly { readonly name: string; readonly position: bigint | null }[];
  /** Leadership of groups: whether any process leads, and whether this one does. */
  readonly leads: readonly { readonly name: string; readonly held: boolean; readonly here: boolean }[];
  /** Fill ratio of the fullest partner's delivery queue; 1: full. */
  readonly queueFill: number;
}

/** Gauges collected within this time share one measurement. */
const SHARED_MS = 1_000;
const SIGHTINGS = 512;

/** Creates the metrics that are measured on collection, the same in every process; docs/runbook.md documents each. */
export function createStateMetrics(registry: Registry, measure: () => Promise<StateOfThings>): void {
  const behindSince = createSightings();
  const state = shareFor(SHARED_MS, () =>
    measure().then((seen) => {
      behindSince.add(seen, performance.now());
      return seen;
    }),
  );
  const gauge = stateGauges(registry, state);

  gauge('doorplate_reachable', '1: the store answers this process.', ['store'], (metric, seen) => {
    metric.set({ store: 'postgresql' }, Number(seen.postgresql));
    metric.set({ store: 'event store' }, Number(seen.eventStore));
  });
  gauge(
    'doorplate_behind_seconds',
    'For how long, as this process saw it, a projection or processor has not come to where the log ended.',
    ['name'],
    (metric, seen) => {
      for (const { name, position } of seen.positions)
        metric.set({ name }, behindSince.of(position, performance.now()));
    },
  );
  gauge('doorplate_led', '1: some process leads this group.', ['name'], (metric, seen) => {
    for (const { name, held } of seen.leads) metric.set({ name }, Number(held));
  });
  gauge('doorplate_leading', '1: this process leads this group.', ['name'], (metric, seen) => {
    for (const { name, here } of seen.leads) metric.set({ name }, Number(here));
  });
  gauge(
    'doorplate_webhook_queue_fill_ratio',
    "How much of its ceiling the fullest partner's queue of deliveries takes.",
    [],
    (metric, seen) => seen.postgresql && metric.set(seen.queueFill),
  );
}

/** Shares one run of the work among calls within `ms` milliseconds of its start. */
export function shareFor<T>(ms: number, work: () => Promise<T>): () => Promise<T> {
  let shared: { readonly result: Promise<T>; readonly startedAt: number } | null = null;
  return () => {
    const startedAt = performance.now();
    if (shared === null || startedAt - shared.startedAt > ms) shared = { result: work(), startedAt };
    return shared.result;
  };
}

const stateGauges =
  (registry: Registry, state: () => Promise<StateOfThings>) =>
  <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    fill: (gauge: Gauge<Label>, seen: StateOfThings) => void,
  ): void => {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const seen = await state();
        // Unknown values are left out instead of repeating old ones.
        this.reset();
        fill(this, seen);
      },
    });
  };

/** Remembers when each head of the log was seen: a consumer that has not reached it is behind since then. */
function createSightings() {
  let sightings: { readonly head: bigint; readonly at: number }[] = [];
  return {
    add: ({ head, positions }: StateOfThings, at: number): void => {
      if (positions.length === 0) return;
      const last = positions.reduce(
        (least, { position }) => ((position ?? -1n) < least ? (position ?? -1n) : least),
        head ?? -1n,
      );
      sightings = sightings.filter((one) => one.head > last);
      if (head !== null && head > (sightings.at(-1)?.head ?? last)) sightings.push({ head, at });
      // Keeps the first, so that a consumer stopped for days does not hide another that falls behind.
      if (sightings.length > SIGHTINGS) sightings = sightings.filter((_, nth) => nth % 2 === 0);
    },
    /** Returns for how long a position is behind, seconds. */
    of: (position: bigint | null, at: number): number => {
      const first = sightings.find(({ head }) => head > (position ?? -1n));
      return first === undefined ? 0 : Math.max(0, at - first.at) / 1_000;
    },
  };
}
