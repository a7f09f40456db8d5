import { unreachable } from '../../domain/kernel/decider.ts';
import { secondsToNextDay } from '../../domain/kernel/time.ts';
import { type Enrichment, type OpenRound, wantedWork } from '../../domain/lookup/enrichment.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import { type IntakeCommand, type IntakeRefusal, intakeStream } from '../../domain/lookup/intake.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
import { type CommandContext, newId } from '../handle.ts';
import {
  type EnrichmentSources,
  handleEnrichment,
  type KnownEnrichment,
  type LookupStreams,
  loadEnrichment,
} from './enrichment-streams.ts';

/** Releases finished reservations from their partners' pending limits. Idempotent. */
export async function settleReservations(
  { intake }: Pick<LookupStreams, 'intake'>,
  reservations: readonly Reservation[],
  context: CommandContext,
): Promise<void> {
  const byPartner = Map.groupBy(reservations, (reservation) => reservation.partner_id);
  await Promise.all(
    [...byPartner].map(async ([partner_id, own]) => {
      const reservation_ids = own.map((reservation) => reservation.reservation_id);
      const settled = await intake.submitCommand(
        intakeStream(partner_id),
        { type: 'Settle', partner_id, reservation_ids, at: context.at },
        { ...context, partnerId: partner_id },
        () => null,
      );
      if (!settled.ok) unreachable(settled as never);
    }),
  );
}

/** Adds a reservation to its enrichment stream, or settles it at once if no enrichment is needed any more. */
export async function submitReservation(
  deps: LookupStreams & EnrichmentSources,
  ip: string,
  reservation: Reservation,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<{ state: Enrichment; position: Position | null }> {
  const command = { type: 'Submit', ip, reservation, configured: deps.configured(), at: context.at } as const;
  const { state, position } = await handleEnrichment(deps, ip, command, context, known);
  const waits = state.open?.reservations.some((one) => one.partner_id === reservation.partner_id);
  if (!waits) await settleReservations(deps, [reservation], context);
  return { state, position };
}

export type WorkPurpose = 'lookup' | 'reveal';

/** Admission of new enrichments over all partners, by rate and by number outstanding. */
export interface WorkCapacity {
  /** Enrichments for reveals take at most half of the intake. Call `finished` when the submission has ended, successful or not. */
  admit(
    ip: string,
    purpose: WorkPurpose,
  ): Promise<
    | { readonly ok: true; finished(position: Position | null): void }
    | { readonly ok: false; readonly retryAfterSeconds: number }
  >;
}

export interface SubmitLookupDeps extends LookupStreams, EnrichmentSources {
  readonly capacity: WorkCapacity;
  /** Resolves when all ended enrichments have settled their reservations, or after a short time limit. */
  readonly settlementsCaughtUp: () => Promise<void>;
}

export interface SubmitLookup {
  readonly ip: string;
  readonly partnerId: string;
  readonly keyId: string;
  readonly dailyAllowance: number | null;
  readonly pendingLimit: number;
}

type AdmissionRefusal = IntakeRefusal | 'enrichment_capacity';

/** Reasons why no enrichment was started; after `submission_unconfirmed` it may still start. */
type NotStarted = AdmissionRefusal | 'submission_unconfirmed';

export type Submission =
  /** A saved result exists; `refresh` is the state of the refresh that it may need. */
  | {
      readonly is: 'saved';
      readonly saved: SavedResult;
      readonly refresh:
        | 'not_needed'
        | 'pending'
        | { readonly deferred: NotStarted; readonly retryAfterSeconds: number };
      readonly position: Position | null;
    }
  | {
      readonly is: 'pending';
      readonly round: OpenRound;
      readonly reservation: Reservation;
      /** Whether this call made the reservation. */
      readonly enqueued: boolean;
      readonly position: Position | null;
    }
  | { readonly is: 'refused'; readonly refusal: NotStarted; readonly retryAfterSeconds: number };

const RETRY_SECONDS = 15;

/** What decides whether a saved result needs more work. `at`: milliseconds. */
interface AskedAt {
  readonly at: number;
  readonly configured: readonly string[];
}

type Reserved =
  | { readonly reservation: Reservation; readonly made: boolean }
  | { readonly refusal: AdmissionRefusal; readonly retryAfterSeconds: number };

/**
 * Handles POST /v1/lookup: returns a saved result, or reserves and then submits an enrichment (contract, Lookup 5).
 * Idempotent: a repeat also completes an interrupted earlier call.
 * @throws the port's errors if the reservation itself is not known to be stored
 */
export async function submitLookup(
  deps: SubmitLookupDeps,
  request: SubmitLookup,
  context: CommandContext,
): Promise<Submission> {
  const loaded = await loadEnrichment(deps, request.ip);
  const configured = deps.configured();
  const answered = answerFrom(loaded.state, request, { at: context.at, configured });
  if (answered) return answered;

  const command = reserveCommand(loaded.state, request, { at: context.at, configured });
  const takesRoom = (await previewReservation(deps, command)) === 'changes' && loaded.state.open === null;
  const slot = takesRoom ? await deps.capacity.admit(request.ip, 'lookup') : null;
  if (slot && !slot.ok) return notStarted(loaded.state, 'enrichment_capacity', slot.retryAfterSeconds);
  let position: Position | null = null;
  try {
    const reserved = await reserve(deps, command, context);
    if ('refusal' in reserved) return notStarted(loaded.state, reserved.refusal, reserved.retryAfterSeconds);
    const submission = await submitReserved(deps, loaded, request, reserved, context);
    position = submission.is === 'refused' ? null : submission.position;
    return submission;
  } finally {
    slot?.finished(position);
  }
}

/** Returns the submission if the stream alone decides it: no enrichment is needed, or the partner's own is running. */
function answerFrom(
  state: Enrichment,
  { partnerId }: SubmitLookup,
  { at, configured }: AskedAt,
): Submission | null {
  const { open, saved } = state;
  const reservation = open?.reservations.find((one) => one.partner_id === partnerId);
  if (open && reservation) {
    return saved
      ? { is: 'saved', saved, refresh: 'pending', position: null }
      : { is: 'pending', round: open, reservation, enqueued: false, position: null };
  }
  return saved && wantedWork(state, at, configured) === null
    ? { is: 'saved', saved, refresh: 'not_needed', position: null }
    : null;
}

const notStarted = ({ saved }: Enrichment, reason: NotStarted, retryAfterSeconds: number): Submission =>
  saved
    ? { is: 'saved', saved, refresh: { deferred: reason, retryAfterSeconds }, position: null }
    : { is: 'refused', refusal: reason, retryAfterSeconds };

type Reserve = Extract<IntakeCommand, { type: 'Reserve' }>;

const reserveCommand = (state: Enrichment, request: SubmitLookup, { at, configured }: AskedAt): Reserve => ({
  type: 'Reserve',
  reservation_id: newId(),
  partner_id: request.partnerId,
  key_id: request.keyId,
  ip: request.ip,
  kind: wantedWork(state, at, configured) ?? 'first',
  dailyAllowance: request.dailyAllowance,
  pendingLimit: request.pendingLimit,
  finished: state.settled.find((one) => one.partner_id === request.partnerId)?.reservation_id ?? null,
  at,
});

/** Previews the reservation, because only a new one that the partner's limits accept needs shared capacity. */
const previewReservation = ({ intake, settlementsCaughtUp }: SubmitLookupDeps, command: Reserve) =>
  intake.dryRun(intakeStream(command.partner_id), command, (refusal) =>
    // Ended enrichments may not be settled yet, so the limit may not really be reached.
    refusal === 'pending_limit' ? settlementsCaughtUp() : undefined,
  );

async function reserve(
  { intake }: SubmitLookupDeps,
  command: Reserve,
  context: CommandContext,
): Promise<Reserved> {
  const { ip, partner_id } = command;
  const result = await intake.submitCommand(intakeStream(partner_id), command, context, (after) =>
    after.open.get(after.openByIp.get(ip) ?? ''),
  );
  if (!result.ok) {
    const retryAfterSeconds =
      result.refusal === 'enrichment_limit' ? secondsToNextDay(context.at) : RETRY_SECONDS;
    return { refusal: result.refusal, retryAfterSeconds };
  }
  const open = result.value.value;
  if (!open) throw new TypeError('the intake accepted a reservation that its state does not hold');
  const { reservation_id, key_id, made_at } = open;
  return {
    reservation: { reservation_id, partner_id, key_id, submitted_at: made_at },
    made: result.value.changed,
  };
}

/** Submits the reservation. After a failure the reservation stays and a processor submits it later. */
async function submitReserved(
  deps: SubmitLookupDeps,
  loaded: KnownEnrichment,
  { ip }: SubmitLookup,
  { reservation, made }: Extract<Reserved, { made: boolean }>,
  context: CommandContext,
): Promise<Submission> {
  try {
    const { state, position } = await submitReservation(deps, ip, reservation, context, loaded);
    const { open, saved } = state;
    if (open && saved) return { is: 'saved', saved, refresh: 'pending', position };
    if (open) return { is: 'pending', round: open, reservation, enqueued: made, position };
    if (saved) return { is: 'saved', saved, refresh: 'not_needed', position };
    throw new TypeError('the enrichment accepted a submission but is neither open nor saved');
  } catch (error) {
    if (error instanceof TypeError) throw error;
    return notStarted(loaded.state, 'submission_unconfirmed', RETRY_SECONDS);
  }
}
