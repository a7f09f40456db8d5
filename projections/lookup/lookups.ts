import type pg from 'pg';
import { NIL } from 'uuid';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import {
  type EnrichmentEvent,
  enrichmentEvents,
  type IntakeEvent,
  intakeEvents,
  openInSnapshot,
  type Reservation,
  type WorkKind,
} from '../../domain/lookup/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import { DUE_CHANNEL, notify } from '../../platform/postgres/notifications.ts';
import type { Projection } from '../projection.ts';
import { columnsOf, forgetBefore, toJson } from '../tables.ts';

/** Folds a batch into the rows of the lookup tables. One file, because each event changes several of the tables. */

type Completed = Extract<EnrichmentEvent, { type: 'lookup.EnrichmentCompleted.v1' }>;
type Requested = Extract<EnrichmentEvent, { type: 'lookup.EnrichmentRequested.v1' }>;
type AttemptFailed = Extract<EnrichmentEvent, { type: 'lookup.EnrichmentAttemptFailed.v1' }>;
type GaveUp = Extract<EnrichmentEvent, { type: 'lookup.EnrichmentGaveUp.v1' }>;
type SavedRow = Completed['data']['result'] & { readonly snapshotted: boolean };

interface WorkRow {
  ip: string;
  round: number;
  kind: WorkKind;
  requested_at: string;
  attempts: number;
  next_attempt_at: string;
  last_attempt_at: string | null;
  /** The partner that requested it first; `NO_PARTNER` for a reveal, because the work must not reveal its partner. */
  asked_by: string;
}

const NO_PARTNER = NIL;

interface ReservationRow {
  reservation_id: string;
  partner_id: string;
  key_id: string;
  ip: string;
  kind: WorkKind;
  state: 'reserved' | 'submitted' | 'completed' | 'gave_up' | 'settled';
  made_at: string;
  ended_at: string | null;
  /** Failed attempts of the work from before it joined. */
  attempts_before: number;
  /** Log position of the event that last changed it. */
  changed_position: string;
}

interface GivenUp {
  readonly ip: string;
  /** The company's details count as complete all the same. */
  readonly is_complete: boolean;
  /** Providers that failed and count as having answered. */
  readonly answered_by: readonly string[];
}

export interface Changes {
  /** Log position of the event that is being applied. */
  position: string;
  /** null: the result was forgotten. */
  readonly saved: Map<string, SavedRow | null>;
  /** Streams that ended with their results, by name. */
  readonly forgotten: Map<string, { stream: string; last_revision: number; last_position: string }>;
  /** Addresses whose last round ended without a result. */
  readonly givenUp: Map<string, GivenUp>;
  /** null: the work has ended. */
  readonly work: Map<string, WorkRow | null>;
  readonly attempts: Map<string, Pick<WorkRow, 'ip' | 'attempts' | 'next_attempt_at' | 'last_attempt_at'>>;
  readonly made: Map<string, ReservationRow>;
  /** `attempts_before` null: as it is. */
  readonly states: Map<
    string,
    Pick<ReservationRow, 'reservation_id' | 'state' | 'ended_at' | 'changed_position'> & {
      readonly attempts_before: number | null;
    }
  >;
  /** Log positions at which reservations were erased with their address. */
  readonly erased: Map<string, string>;
}

export function foldIntake(changes: Changes, { type, data }: IntakeEvent, stream: string): void {
  switch (type) {
    case 'lookup.ReservationMade.v1':
      changes.made.set(data.reservation_id, {
        ...data,
        state: 'reserved',
        ended_at: null,
        attempts_before: 0,
        changed_position: changes.position,
      });
      return;
    case 'lookup.ReservationSettled.v1':
      move(changes, data.reservation_id, 'settled', data.settled_at);
      return;
    case 'lookup.ReservationsErased.v1':
      for (const id of data.reservation_ids) {
        changes.made.delete(id);
        changes.states.delete(id);
        changes.erased.set(id, changes.position);
      }
      return;
    case 'lookup.IntakeSnapshotted.v1':
      // Truncated reservations are only in the snapshot; known ones keep their state.
      for (const { reservation_id, ip, key_id, made_at } of openInSnapshot(data)) {
        const partner_id = stream.slice(stream.indexOf('-') + 1);
        restore(changes, { reservation_id, partner_id, key_id, ip, kind: 'first', made_at }, 'reserved', 0);
      }
      return;
    default:
      unreachable(type);
  }
}

export function foldEnrichment(
  changes: Changes,
  { type, data }: EnrichmentEvent,
  { stream, revision, position }: RecordedEvent,
): void {
  switch (type) {
    case 'lookup.EnrichmentRequested.v1':
      requested(changes, data);
      return;
    case 'lookup.EnrichmentJoined.v1':
      submitted(changes, data.ip, 'first', data.reservation, data.attempts);
      return;
    case 'lookup.EnrichmentAttemptFailed.v1':
      attempted(changes, data);
      return;
    case 'lookup.EnrichmentCompleted.v1': {
      const { result, settles } = data;
      changes.saved.set(result.ip, { ...result, snapshotted: false });
      changes.givenUp.delete(result.ip);
      end(changes, result.ip, 'completed', result.enriched_at, settles);
      return;
    }
    case 'lookup.EnrichmentSnapshotted.v1': {
      const { result, settles, gave_up_at } = data;
      changes.saved.set(result.ip, { ...result, snapshotted: true });
      changes.givenUp.delete(result.ip);
      // Matters only in a rebuild; in the live table these reservations have already ended.
      if (gave_up_at === null) end(changes, result.ip, 'completed', result.enriched_at, settles);
      else end(changes, result.ip, 'gave_up', gave_up_at, settles);
      return;
    }
    case 'lookup.ResultForgotten.v1':
      changes.saved.set(data.ip, null);
      // No row is written by two parts of the statement.
      changes.givenUp.delete(data.ip);
      changes.forgotten.set(stream, { stream, last_revision: revision, last_position: String(position) });
      return;
    case 'lookup.EnrichmentGaveUp.v1':
      giveUp(changes, data);
      end(changes, data.ip, 'gave_up', data.gave_up_at, data.settles);
      return;
    default:
      unreachable(type);
  }
}

/** Changes the batch's own row if there is one, so that no row is written by two parts of the statement. */
function giveUp(changes: Changes, { ip, kind, failures }: GaveUp['data']): void {
  const is_complete = kind === 'completion';
  const answered_by = is_complete ? failures.map(({ provider }) => provider) : [];
  const saved = changes.saved.get(ip);
  if (saved) {
    const needs_company_enrichment = saved.needs_company_enrichment && !is_complete;
    changes.saved.set(ip, {
      ...saved,
      snapshotted: false,
      needs_company_enrichment,
      answered_by: [...saved.answered_by, ...answered_by],
    });
    return;
  }
  const before = changes.givenUp.get(ip);
  changes.givenUp.set(ip, {
    ip,
    is_complete: is_complete || before?.is_complete === true,
    answered_by: [...(before?.answered_by ?? []), ...answered_by],
  });
}

function end(
  changes: Changes,
  ip: string,
  state: 'completed' | 'gave_up',
  at: string,
  settles: readonly Reservation[],
): void {
  changes.work.set(ip, null);
  changes.attempts.delete(ip);
  for (const { reservation_id } of settles) move(changes, reservation_id, state, at);
}

function requested(changes: Changes, data: Requested['data']): void {
  const { ip, round, kind, requested_at, reservation } = data;
  changes.attempts.delete(ip);
  changes.work.set(ip, {
    ip,
    round,
    kind,
    requested_at,
    attempts: 0,
    next_attempt_at: requested_at,
    last_attempt_at: null,
    asked_by: reservation?.partner_id ?? NO_PARTNER,
  });
  if (reservation) submitted(changes, ip, kind, reservation);
}

function attempted({ work, attempts }: Changes, failed: AttemptFailed['data']): void {
  const { ip, attempt, next_attempt_at, failed_at: last_attempt_at } = failed;
  const changed = { attempts: attempt, next_attempt_at, last_attempt_at };
  const row = work.get(ip);
  if (row) Object.assign(row, changed);
  else attempts.set(ip, { ip, ...changed });
}

/** Adds a reservation whose own event may have been truncated from the log. */
function restore(
  { made, position: changed_position }: Changes,
  facts: Omit<ReservationRow, 'state' | 'ended_at' | 'attempts_before' | 'changed_position'>,
  state: 'reserved' | 'submitted',
  attempts_before: number,
): void {
  if (made.has(facts.reservation_id)) return;
  made.set(facts.reservation_id, { ...facts, state, ended_at: null, attempts_before, changed_position });
}

function submitted(
  changes: Changes,
  ip: string,
  kind: WorkKind,
  reservation: Reservation,
  attempts_before = 0,
): void {
  const { reservation_id, partner_id, key_id, submitted_at: made_at } = reservation;
  restore(changes, { reservation_id, partner_id, key_id, ip, kind, made_at }, 'submitted', attempts_before);
  move(changes, reservation_id, 'submitted', null, attempts_before);
}

/** Moves a reservation to a state. `completed` and `gave_up` are final; `settled` may be replaced by them. */
function move(
  changes: Changes,
  id: string,
  state: ReservationRow['state'],
  ended_at: string | null,
  attempts: number | null = null,
): void {
  const made = changes.made.get(id);
  const attempts_before =
    attempts ?? made?.attempts_before ?? changes.states.get(id)?.attempts_before ?? null;
  const changed_position = changes.position;
  if (made && !isEnded(made.state, state))
    Object.assign(made, { state, ended_at, attempts_before, changed_position });
  const before = changes.states.get(id)?.state;
  if (before && isEnded(before, state)) return;
  changes.states.set(id, { reservation_id: id, state, ended_at, attempts_before, changed_position });
}

const isEnded = (before: ReservationRow['state'], next: ReservationRow['state']): boolean =>
  before === 'completed' || before === 'gave_up' || (before === 'settled' && next === 'submitted');

/** Projects saved results, open enrichments and each partner's reservations: the read model of GET /v1/lookup. */
export const lookups: Projection = {
  name: 'lookups',
  tables: ['saved_lookup', 'forgotten_lookup', 'enrichment_work', 'reservation', 'erased_reservation'],
  carryOver: 'insert into erased_reservation select * from read.erased_reservation on conflict do nothing',
  types: Object.keys({ ...intakeEvents, ...enrichmentEvents }),
  async apply(events, db) {
    const changes: Changes = {
      position: '',
      saved: new Map(),
      forgotten: new Map(),
      givenUp: new Map(),
      work: new Map(),
      attempts: new Map(),
      made: new Map(),
      states: new Map(),
      erased: new Map(),
    };
    for (const stored of events) {
      changes.position = String(stored.position);
      const onIntake = readEvent(intakeEvents, stored);
      if (onIntake) foldIntake(changes, onIntake, stored.stream);
      const onEnrichment = readEvent(enrichmentEvents, stored);
      if (onEnrichment) foldEnrichment(changes, onEnrichment, stored);
    }
    await write(changes, db);
  },
};

async function write(changes: Changes, db: pg.ClientBase): Promise<void> {
  const { saved, forgotten, givenUp, work, attempts, made, states, erased } = changes;
  if (erased.size > 0)
    await db.query(
      `with gone as (select * from unnest($1::uuid[], $2::bigint[]) as g (reservation_id, changed_position)),
            deleted as (delete from reservation where reservation_id in (select reservation_id from gone))
       insert into erased_reservation (reservation_id, changed_position)
       select * from gone on conflict do nothing`,
      [[...erased.keys()], [...erased.values()]],
    );
  const sizes = [saved, givenUp, work, attempts, made, states].map(({ size }) => size);
  if (sizes.every((size) => size === 0)) return;
  const ended = [...work].flatMap(([ip, row]) => (row === null ? [ip] : []));
  const open = [...work.values()].filter((row) => row !== null);
  const values = [
    toJson([...saved.values()].filter((one) => one !== null)),
    toJson(givenUp.values()),
    ended,
    toJson(open),
    toJson(attempts.values()),
    toJson(made.values()),
    toJson(states.values()),
    [...saved].flatMap(([ip, result]) => (result === null ? [ip] : [])),
    toJson(forgotten.values()),
  ];
  await db.query({ name: 'apply_lookups', text: APPLY, values });
  const isDue = open.length > 0 || attempts.size > 0;
  if (isDue) await notify(db, DUE_CHANNEL);
}

const SAVED = `match_type, network, company, sources, enriched_at, fresh_until, needs_company_enrichment, answered_by,
               snapshotted`;
const WORK = 'round, kind, requested_at, attempts, next_attempt_at, last_attempt_at, asked_by';
const MADE = `reservation_id, partner_id, key_id, ip, kind, state, made_at, ended_at, attempts_before,
              changed_position`;

/**
 * Writes a batch in one statement, because callers wait for each round trip. The parts of a statement all see the tables as
 * of its start, so the fold merges all changes of a row into one part. A new reservation may already exist (from a snapshot
 * or restored); then only its state changes.
 */
const APPLY = `
  with saved as (
    insert into saved_lookup as s (ip, ${SAVED})
    select ip, ${SAVED} from json_populate_recordset(null::saved_lookup, $1)
    on conflict (ip) do update set (${SAVED}) = (${columnsOf('excluded', SAVED)})),
  unsaved as (
    delete from saved_lookup where ip = any ($8)),
  forgotten as (
    insert into forgotten_lookup (stream, last_revision, last_position)
    select stream, last_revision, last_position from json_populate_recordset(null::forgotten_lookup, $9)
    on conflict (stream) do nothing),
  given_up as (
    update saved_lookup s
    set snapshotted = false, needs_company_enrichment = needs_company_enrichment and not g.is_complete,
        answered_by = s.answered_by || g.answered_by
    from json_to_recordset($2) as g (ip text, is_complete boolean, answered_by text[]) where s.ip = g.ip),
  ended as (
    delete from enrichment_work where ip = any ($3)),
  opened as (
    insert into enrichment_work (ip, ${WORK})
    select ip, ${WORK} from json_populate_recordset(null::enrichment_work, $4)
    on conflict (ip) do update set (${WORK}) = (${columnsOf('excluded', WORK)})),
  attempted as (
    update enrichment_work w set attempts = n.attempts, next_attempt_at = n.next_attempt_at,
                                 last_attempt_at = n.last_attempt_at
    from json_populate_recordset(null::enrichment_work, $5) n where w.ip = n.ip),
  made as (
    insert into reservation (${MADE})
    select ${MADE} from json_populate_recordset(null::reservation, $6)
    on conflict (reservation_id) do nothing)
  update reservation r
  set state = n.state, ended_at = n.ended_at, attempts_before = coalesce(n.attempts_before, r.attempts_before),
      changed_position = n.changed_position
  from json_populate_recordset(null::reservation, $7) n
  where r.reservation_id = n.reservation_id
    and r.state not in ('completed', 'gave_up') and not (r.state = 'settled' and n.state = 'submitted')`;

/** Deletes reservations that ended before `day` (`YYYY-MM-DD`), in batches that block no other query for long. */
export const forgetReservationsBefore = (db: pg.Pool, day: string): Promise<void> =>
  forgetBefore(db, ['reservation', 'ended_at'], day);

/** Deletes the row of a stream that the event store has deleted. */
export async function forgetLookupStream(db: pg.Pool, stream: string): Promise<void> {
  await db.query('delete from read.forgotten_lookup where stream = $1', [stream]);
}
