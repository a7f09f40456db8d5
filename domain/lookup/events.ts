import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';
import { savedResultSchema } from './result.ts';

const instant = z.iso.datetime();
const failures = z.array(z.object({ provider: shownText(), reason: z.string() }));

/** Reason for the work: nothing is saved, the result is stale, or a provider failed to contribute to it. */
export const workKindSchema = z.enum(['first', 'refresh', 'completion']);
export type WorkKind = z.output<typeof workKindSchema>;

export const reservationSchema = z.object({
  reservation_id: z.uuid(),
  partner_id: z.uuid(),
  key_id: shownText(),
  submitted_at: instant,
});
export type Reservation = z.output<typeof reservationSchema>;

/** Stream `intake-<partner>`: the partner's requests, for its allowance and its pending limit. */
export const intakeEvents = {
  'lookup.ReservationMade.v1': z.object({
    reservation_id: z.uuid(),
    partner_id: z.uuid(),
    key_id: shownText(),
    ip: z.string(),
    kind: workKindSchema,
    made_at: instant,
  }),
  'lookup.ReservationSettled.v1': z.object({
    reservation_id: z.uuid(),
    partner_id: z.uuid(),
    settled_at: instant,
  }),
  /** The address was erased: these reservations end, and no answer knows of them. */
  'lookup.ReservationsErased.v1': z.object({
    partner_id: z.uuid(),
    reservation_ids: z.array(z.uuid()),
    erased_at: instant,
  }),
  /** Snapshot of the state; earlier events may be truncated. */
  'lookup.IntakeSnapshotted.v1': z.object({
    day: shownText(),
    used_today: z.record(z.string(), z.int()),
    /** Last day before `day` with reservations; missing in snapshots of earlier versions. */
    earlier: z.object({ day: shownText(), used: z.record(z.string(), z.int()) }).optional(),
    keys: z.array(shownText()),
    /** Compact, because there may be ten thousand: id, ip, index in `keys`, made at in milliseconds. */
    open: z.array(z.tuple([shownText(), z.string(), z.int(), z.int()])),
  }),
} as const;
export type IntakeEvent = EventOf<typeof intakeEvents>;

export type IntakeSnapshot = Extract<IntakeEvent, { type: 'lookup.IntakeSnapshotted.v1' }>['data'];

/** Expands the open reservations of a snapshot. */
export const openInSnapshot = ({ keys, open }: IntakeSnapshot) =>
  open.map(([reservation_id, ip, key, made_at]) => ({
    reservation_id,
    ip,
    key_id: keys[key] ?? '',
    made_at: new Date(made_at).toISOString(),
  }));

/** Stream `enrichment-<keyed digest>`, later generations with a suffix `~<n>`: the rounds of work on one address. */
export const enrichmentEvents = {
  'lookup.EnrichmentRequested.v1': z.object({
    ip: z.string(),
    round: z.int(),
    kind: workKindSchema,
    requested_at: instant,
    /** null: requested by a reveal, which is no API submission. */
    reservation: reservationSchema.nullable(),
  }),
  'lookup.EnrichmentJoined.v1': z.object({
    ip: z.string(),
    round: z.int(),
    reservation: reservationSchema,
    /** Attempts of the round that had failed before; absent: none, or not noted by a release before 0.3.0. */
    attempts: z.int().optional(),
  }),
  'lookup.EnrichmentAttemptFailed.v1': z.object({
    ip: z.string(),
    round: z.int(),
    attempt: z.int(),
    failed_at: instant,
    next_attempt_at: instant,
    failures,
    /** Providers that answered that they know nothing; later attempts of the round do not ask them again. */
    answered: z.array(shownText()).optional(),
  }),
  'lookup.EnrichmentCompleted.v1': z.object({
    round: z.int(),
    attempt: z.int(),
    result: savedResultSchema,
    settles: z.array(reservationSchema),
  }),
  /**
   * Snapshot of the state, with the result's times truncated to UTC days; earlier events may then be truncated, so that no
   * remaining time or log position ties the address to a visit (docs/privacy.md).
   */
  'lookup.EnrichmentSnapshotted.v1': z.object({
    round: z.int(),
    result: savedResultSchema,
    /** Reservations of the last round. */
    settles: z.array(reservationSchema),
    /** null: the last round ended with a result. */
    gave_up_at: instant.nullable(),
  }),
  /** The result was not asked for in a long time: the stream ends and is deleted. */
  'lookup.ResultForgotten.v1': z.object({ ip: z.string(), forgotten_at: instant }),
  /** A refresh or completion failed five times. */
  'lookup.EnrichmentGaveUp.v1': z.object({
    ip: z.string(),
    round: z.int(),
    attempt: z.int(),
    kind: workKindSchema,
    gave_up_at: instant,
    failures,
    settles: z.array(reservationSchema),
  }),
} as const;
export type EnrichmentEvent = EventOf<typeof enrichmentEvents>;

export const INTAKE_PREFIX = 'intake-';
export const ENRICHMENT_PREFIX = 'enrichment-';
/** Separates digest and generation in a stream's name; digests do not contain it. */
const GENERATION = '~';

/** `digest`: of the canonical address (architecture, rule 13). `generation`: number of forgotten streams of the address. */
export const enrichmentStream = (digest: string, generation = 0): string =>
  `${ENRICHMENT_PREFIX}${digest}${generation === 0 ? '' : `${GENERATION}${generation}`}`;

/** Returns the next generation's stream of an address. */
export function nextEnrichmentStream(stream: string): string {
  const [digest = '', generation = '0'] = stream.slice(ENRICHMENT_PREFIX.length).split(GENERATION);
  return enrichmentStream(digest, Number(generation) + 1);
}

/** Returns the keyed digest in the name of an enrichment stream of any generation. */
export const digestOfEnrichment = (stream: string): string =>
  stream.slice(ENRICHMENT_PREFIX.length).split(GENERATION, 1)[0] ?? '';
