import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import { enrichmentEvents, intakeEvents } from '../../domain/lookup/events.ts';
import { DUE_CHANNEL, notify } from '../../platform/postgres/notifications.ts';
import { forgetInBatches } from '../../platform/postgres/transactions.ts';
import type { Projection } from '../projection.ts';
import { type Changes, foldEnrichment, foldIntake } from './lookup-fold.ts';

/** Projects saved results, open enrichments and each partner's reservations: the read model of GET /v1/lookup. */
export const lookups: Projection = {
  name: 'lookups',
  tables: ['saved_lookup', 'forgotten_lookup', 'enrichment_work', 'reservation'],
  types: Object.keys({ ...intakeEvents, ...enrichmentEvents }),
  async apply(events, db) {
    const changes: Changes = {
      saved: new Map(),
      forgotten: new Map(),
      givenUp: new Map(),
      work: new Map(),
      attempts: new Map(),
      made: new Map(),
      states: new Map(),
    };
    for (const stored of events) {
      const onIntake = readEvent(intakeEvents, stored);
      if (onIntake) foldIntake(changes, onIntake, stored.stream);
      const onEnrichment = readEvent(enrichmentEvents, stored);
      if (onEnrichment) foldEnrichment(changes, onEnrichment, stored);
    }
    await write(changes, db);
  },
};

const write = async (changes: Changes, db: pg.ClientBase): Promise<void> => {
  const { saved, forgotten, givenUp, work, attempts, made, states } = changes;
  const sizes = [saved, givenUp, work, attempts, made, states].map(({ size }) => size);
  if (sizes.every((size) => size === 0)) return;
  const ended = [...work].flatMap(([ip, row]) => (row === null ? [ip] : []));
  const open = [...work.values()].filter((row) => row !== null);
  const json = (rows: Iterable<unknown>): string => JSON.stringify([...rows]);
  const values = [
    json([...saved.values()].filter((one) => one !== null)),
    json(givenUp.values()),
    ended,
    json(open),
    json(attempts.values()),
    json(made.values()),
    json(states.values()),
    [...saved].flatMap(([ip, result]) => (result === null ? [ip] : [])),
    json(forgotten.values()),
  ];
  await db.query({ name: 'apply_lookups', text: APPLY, values });
  const isDue = open.length > 0 || attempts.size > 0;
  if (isDue) await notify(db, DUE_CHANNEL);
};

/**
 * Writes a batch in one statement, because callers wait for each round trip. The parts of a statement all see the tables as
 * of its start, so the fold merges all changes of a row into one part. A new reservation may already exist (from a snapshot
 * or restored); then only its state changes.
 */
const APPLY = `
  with saved as (
    insert into saved_lookup as s
      (ip, match_type, network, company, sources, enriched_at, fresh_until, needs_company_enrichment, answered_by,
       snapshotted)
    select ip, match_type, network, company, sources, enriched_at, fresh_until, needs_company_enrichment, answered_by,
           snapshotted
    from json_populate_recordset(null::saved_lookup, $1)
    on conflict (ip) do update
    set (match_type, network, company, sources, enriched_at, fresh_until, needs_company_enrichment, answered_by,
         snapshotted) =
      (excluded.match_type, excluded.network, excluded.company, excluded.sources, excluded.enriched_at,
       excluded.fresh_until, excluded.needs_company_enrichment, excluded.answered_by, excluded.snapshotted)),
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
    insert into enrichment_work
      (ip, round, kind, requested_at, attempts, next_attempt_at, last_attempt_at, asked_by)
    select ip, round, kind, requested_at, attempts, next_attempt_at, last_attempt_at, asked_by
    from json_populate_recordset(null::enrichment_work, $4)
    on conflict (ip) do update
    set (round, kind, requested_at, attempts, next_attempt_at, last_attempt_at, asked_by) =
      (excluded.round, excluded.kind, excluded.requested_at, excluded.attempts, excluded.next_attempt_at,
       excluded.last_attempt_at, excluded.asked_by)),
  attempted as (
    update enrichment_work w set attempts = n.attempts, next_attempt_at = n.next_attempt_at,
                                 last_attempt_at = n.last_attempt_at
    from json_populate_recordset(null::enrichment_work, $5) n where w.ip = n.ip),
  made as (
    insert into reservation (reservation_id, partner_id, key_id, ip, kind, state, made_at, ended_at, attempts_before)
    select reservation_id, partner_id, key_id, ip, kind, state, made_at, ended_at, attempts_before
    from json_populate_recordset(null::reservation, $6)
    on conflict (reservation_id) do nothing)
  update reservation r
  set state = n.state, ended_at = n.ended_at, attempts_before = coalesce(n.attempts_before, r.attempts_before)
  from json_populate_recordset(null::reservation, $7) n
  where r.reservation_id = n.reservation_id
    and r.state not in ('completed', 'gave_up') and not (r.state = 'settled' and n.state = 'submitted')`;

/** Deletes reservations that ended before `day` (`YYYY-MM-DD`), in batches that block no other query for long. */
export const forgetReservationsBefore = (db: pg.Pool, day: string): Promise<void> =>
  forgetInBatches(
    db,
    `delete from read.reservation where reservation_id = any (array(
       select reservation_id from read.reservation where ended_at < $1::date::timestamp at time zone 'UTC'
       order by ended_at limit $2))`,
    day,
  );

/** Deletes the row of a stream that the event store has deleted. */
export const forgetLookupStream = async (db: pg.Pool, stream: string): Promise<void> => {
  await db.query('delete from read.forgotten_lookup where stream = $1', [stream]);
};
