import { Gauge, type Registry } from 'prom-client';

/** How things stand over all processes. */
export interface StateOfThings {
  readonly postgresql: boolean;
  readonly eventStore: boolean;
  /** The log's last place; null: it is empty, or not known. */
  readonly head: bigint | null;
  /** How far each reader of the log is; null: nowhere yet. */
  readonly positions: readonly { readonly name: string; readonly position: bigint | null }[];
  /** What one process of all does at a time: whether one does, and whether it is this one. */
  readonly leads: readonly { readonly name: string; readonly held: boolean; readonly here: boolean }[];
  /** How much of its ceiling the fullest partner's queue of deliveries takes; 1: it is full. */
  readonly queueFill: number;
}

/** Gauges that are asked for together share one look. */
const SHARED_MS = 1_000;
/** Of the places that the log was seen to end at, so many are remembered. */
const SIGHTINGS = 512;

/** What `/metrics` finds out when it is asked, in every process alike. Each name is documented in docs/operations.md. */
export const createStateMetrics = (
  registry: Registry,
  measure: () => Promise<StateOfThings>,
  /** Milliseconds of a steady clock. */
  now: () => number,
): void => {
  const behindSince = createSightings();
  let measuring: Promise<StateOfThings> | null = null;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const state = (): Promise<StateOfThings> => {
    if (measuring === null || performance.now() - lookedAt > SHARED_MS) {
      lookedAt = performance.now();
      measuring = measure().then((seen) => {
        behindSince.saw(seen, now());
        return seen;
      });
    }
    return measuring;
  };

  const gauge = <Label extends string>(
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
        // What is not known now is left out rather than told as it was.
        this.reset();
        fill(this, seen);
      },
    });
  };

  gauge('doorplate_reachable', '1: the store answers this process.', ['store'], (metric, seen) => {
    metric.set({ store: 'postgresql' }, Number(seen.postgresql));
    metric.set({ store: 'event store' }, Number(seen.eventStore));
  });
  gauge(
    'doorplate_behind_seconds',
    'For how long, as this process saw it, a projection or processor has not come to where the log ended.',
    ['name'],
    (metric, seen) => {
      for (const { name, position } of seen.positions) metric.set({ name }, behindSince.of(position, now()));
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
};

/** Where the log ended, and when that was seen: who has not come there is behind since then. */
const createSightings = () => {
  let sightings: { readonly head: bigint; readonly at: number }[] = [];
  return {
    saw: ({ head, positions }: StateOfThings, at: number): void => {
      if (positions.length === 0) return;
      const last = positions.reduce(
        (least, { position }) => ((position ?? -1n) < least ? (position ?? -1n) : least),
        head ?? -1n,
      );
      sightings = sightings.filter((one) => one.head > last);
      if (head !== null && head > (sightings.at(-1)?.head ?? last)) sightings.push({ head, at });
      // The first and the last stay: one that is stopped for days must not hide another that falls behind.
      if (sightings.length > SIGHTINGS) sightings = sightings.filter((_, nth) => nth % 2 === 0);
    },
    /** Seconds. */
    of: (position: bigint | null, at: number): number => {
      const first = sightings.find(({ head }) => head > (position ?? -1n));
      return first === undefined ? 0 : Math.max(0, at - first.at) / 1_000;
    },
  };
};
