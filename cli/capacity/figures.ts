/** What one operation costs, as measured on one machine: what `calibrate` writes and the model reads. */
import { z } from 'zod';

/** `new_lookup`: of an address without a result, with its enrichment. `delivery`: of one event to one endpoint. */
export const KINDS = ['saved_lookup', 'new_lookup', 'visit', 'reveal', 'delivery'] as const;
export type Kind = (typeof KINDS)[number];

/** Groups of projections that this traffic feeds. */
export const GROUPS = ['lookups', 'visits', 'webhooks'] as const;
export type GroupName = (typeof GROUPS)[number];

const figure = z.number().nonnegative();
const rate = z.number().positive();

const unitCostSchema = z.strictObject({
  /** Microseconds of CPU. */
  cpu: z.strictObject({ api: figure, workers: figure, postgresql: figure, eventstoredb: figure }),
  /** In the event log, wherever that is. */
  log_bytes: figure,
  /** In the read models and all other tables. */
  table_bytes: figure,
  /** Bytes that PostgreSQL writes to its log. */
  wal_bytes: figure,
  /** Events that it appends, and those of them that each group applies. */
  events: figure,
  applied: z.strictObject({ lookups: figure, visits: figure, webhooks: figure }),
});
export type UnitCost = z.infer<typeof unitCostSchema>;

const processSchema = z.strictObject({
  /** Share of a core without any traffic. */
  rest_cores: figure,
  memory_bytes: figure,
  connections: figure,
});

export const figuresSchema = z.strictObject({
  measured_at: z.iso.datetime(),
  machine: z.strictObject({ cores: z.int().positive(), cpu: z.string(), memory_gib: figure }),
  /** Such as `PostgreSQL 18.4`. */
  store: z.string(),
  kinds: z.strictObject(
    Object.fromEntries(KINDS.map((kind) => [kind, unitCostSchema])) as Record<Kind, typeof unitCostSchema>,
  ),
  processes: z.strictObject({ api: processSchema, workers: processSchema }),
  postgresql: z.strictObject({ rest_cores: figure, memory_bytes: figure, bytes_a_connection: figure }),
  /** Memory of one EventStoreDB node; 0 without one. */
  node_memory_bytes: figure,
  /** The most that one process applied of the group `visits`, which had fallen behind. */
  group_events_per_second: rate,
  /** Sessions that one process, which had fallen behind, queued for an endpoint, and sent. */
  fanned_out_per_second: rate,
  /** Single events that one process with 64 callers appended: the limit of the log in PostgreSQL, where one writes at a time. */
  appends_per_second: rate,
});
export type Figures = z.infer<typeof figuresSchema>;

const cpuOf = ({ kinds }: Figures): number =>
  KINDS.reduce((sum, kind) => {
    const { api, workers, postgresql } = kinds[kind].cpu;
    return sum + api + workers + postgresql;
  }, 0);

/**
 * Returns the figures of another store as a machine would show them that was measured with PostgreSQL alone: CPU times
 * and rates in the ratio in which the two machines differ there.
 */
export function scaledTo(own: Figures, reference: Figures, other: Figures): Figures {
  const factor = cpuOf(own) / cpuOf(reference);
  const kinds = Object.fromEntries(
    KINDS.map((kind) => {
      const cost = other.kinds[kind];
      const { api, workers, postgresql, eventstoredb } = cost.cpu;
      const cpu = {
        api: api * factor,
        workers: workers * factor,
        postgresql: postgresql * factor,
        eventstoredb: eventstoredb * factor,
      };
      return [kind, { ...cost, cpu }];
    }),
  ) as Figures['kinds'];
  return {
    ...other,
    kinds,
    machine: own.machine,
    group_events_per_second: other.group_events_per_second / factor,
    fanned_out_per_second: other.fanned_out_per_second / factor,
    appends_per_second: other.appends_per_second / factor,
  };
}
