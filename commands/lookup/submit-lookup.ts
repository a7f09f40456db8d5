import { v7 as uuid } from 'uuid';
import { secondsToNextDay } from '../../domain/kernel/time.ts';
import { type Enrichment, type OpenRound, wantedWork } from '../../domain/lookup/enrichment.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import { type IntakeCommand, type IntakeRefusal, intakeStream } from '../../domain/lookup/intake.ts';
import type { SavedResult } from '../../domain/lookup/result.ts';
import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import type { LookupStreams } from './aggregates.ts';
import { handleEnrichment, type KnownEnrichment, loadEnrichment } from './generations.ts';
import { settleReservations } from './settle-reservations.ts';

/** Room for new work over all partners: its rate and how much may be outstanding. */
export interface WorkCapacity {
  /** `asker`: who shares the intake with others. `finished` is called when the submission has ended, whatever became of it. */
  admit(
    ip: string,
    asker: string,
  ): Promise<
    | { readonly ok: true; finished(position: Position | null): void }
    | { readonly ok: false; readonly retryAfterSeconds: number }
  >;
}

export interface SubmitLookupDeps extends LookupStreams {
  readonly capacity: WorkCapacity;
  /** Resolves when reservations whose work had ended by now are settled, or a short time is over. */
  readonly settlementsCaughtUp: () => Promise<void>;
}

export interface SubmitLookup {
  readonly ip: string;
  readonly partnerId: string;
  readonly keyId: string;
  readonly dailyAllowance: number | null;
  readonly pendingLimit: number;
}

export type AdmissionRefusal = IntakeRefusal | 'enrichment_capacity';

/** Reasons for not having started work; the last one is no refusal: the work may yet start. */
export type NotStarted = AdmissionRefusal | 'submission_unconfirmed';

export type Submission =
  /** A saved result serves; `refresh` says what became of the work that it may need. */
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
      /** Whether this very call made the reservation. */
      readonly enqueued: boolean;
      readonly position: Position | null;
    }
  | { readonly is: 'refused'; readonly refusal: NotStarted; readonly retryAfterSeconds: number };

const RETRY_SECONDS = 15;

type Reserved =
  | { readonly reservation: Reservation; readonly made: boolean }
  | { readonly refusal: AdmissionRefusal; readonly retryAfterSeconds: number };

/**
 * POST /v1/lookup: finds a saved result, or reserves and then submits the work (spec, Lookup; decisions,
 * "Reservation before submission"). A repeat changes nothing and completes what an earlier one left.
 * @throws the port's errors when not even the reservation is known to stand
 */
export const submitLookup = async (
  deps: SubmitLookupDeps,
  request: SubmitLookup,
  context: CommandContext,
): Promise<Submission> => {
  const loaded = await loadEnrichment(deps, request.ip);
  const answered = answerFrom(loaded.state, request, context.at);
  if (answered) return answered;

  const command = reserveCommand(loaded.state, request, context);
  const takesRoom = (await previewReservation(deps, command)) === 'changes' && loaded.state.open === null;
  const slot = takesRoom ? await deps.capacity.admit(request.ip, request.partnerId) : null;
  if (slot && !slot.ok) return notStarted(loaded.state, 'enrichment_capacity', slot.retryAfterSeconds);
  let position: Position | null = null;
  try {
    const reserved = await reserve(deps, command, context);
    if ('refusal' in reserved) return notStarted(loaded.state, reserved.refusal, reserved.retryAfterSeconds);
    const submission = await submit(deps, loaded, request, reserved, context);
    position = submission.is === 'refused' ? null : submission.position;
    return submission;
  } finally {
    slot?.finished(position);
  }
};

/** What the stream says by itself: nothing is wanted, or the partner's own work is under way. */
const answerFrom = (state: Enrichment, { partnerId }: SubmitLookup, at: number): Submission | null => {
  const { open, saved } = state;
  const reservation = open?.reservations.find((one) => one.partner_id === partnerId);
  if (open && reservation) {
    return saved
      ? { is: 'saved', saved, refresh: 'pending', position: null }
      : { is: 'pending', round: open, reservation, enqueued: false, position: null };
  }
  return saved && wantedWork(state, at) === null
    ? { is: 'saved', saved, refresh: 'not_needed', position: null }
    : null;
};

const notStarted = ({ saved }: Enrichment, reason: NotStarted, retryAfterSeconds: number): Submission =>
  saved
    ? { is: 'saved', saved, refresh: { deferred: reason, retryAfterSeconds }, position: null }
    : { is: 'refused', refusal: reason, retryAfterSeconds };

type Reserve = Extract<IntakeCommand, { type: 'Reserve' }>;

const reserveCommand = (state: Enrichment, request: SubmitLookup, { at }: CommandContext): Reserve => ({
  type: 'Reserve',
  reservation_id: uuid(),
  partner_id: request.partnerId,
  key_id: request.keyId,
  ip: request.ip,
  kind: wantedWork(state, at) ?? 'first',
  dailyAllowance: request.dailyAllowance,
  pendingLimit: request.pendingLimit,
  finished: state.settled.find((one) => one.partner_id === request.partnerId)?.reservation_id ?? null,
  at,
});

/** New work takes room before it is reserved; what the partner's own limits will refuse, or what has it, does not. */
const previewReservation = async ({ intake, settlementsCaughtUp }: SubmitLookupDeps, command: Reserve) => {
  const stream = intakeStream(command.partner_id);
  const preview = await intake.dryRun(stream, command);
  if (preview !== 'pending_limit') return preview;
  // Work that has ended may not be settled yet: a limit is told only when it is really reached.
  await settlementsCaughtUp();
  return intake.dryRun(stream, command);
};

const reserve = async (
  { intake }: SubmitLookupDeps,
  command: Reserve,
  context: CommandContext,
): Promise<Reserved> => {
  const { ip, partner_id } = command;
  const result = await intake.submit(intakeStream(partner_id), command, context, (after) =>
    after.open.get(after.openByIp.get(ip) ?? ''),
  );
  if (!result.ok) {
    const retryAfterSeconds =
      result.refusal === 'enrichment_limit' ? secondsToNextDay(context.at) : RETRY_SECONDS;
    return { refusal: result.refusal, retryAfterSeconds };
  }
  const open = result.value.value;
  if (!open) throw new TypeError('a reservation without a reservation');
  const { reservation_id, key_id, made_at } = open;
  return {
    reservation: { reservation_id, partner_id, key_id, submitted_at: made_at },
    made: result.value.changed,
  };
};

/** The second step. Whatever goes wrong here, the reservation stands and is completed later. */
const submit = async (
  deps: SubmitLookupDeps,
  loaded: KnownEnrichment,
  { ip }: SubmitLookup,
  { reservation, made }: Extract<Reserved, { made: boolean }>,
  context: CommandContext,
): Promise<Submission> => {
  try {
    const { state, position } = await submitReservation(deps, ip, reservation, context, loaded);
    const { open, saved } = state;
    if (open && saved) return { is: 'saved', saved, refresh: 'pending', position };
    if (open) return { is: 'pending', round: open, reservation, enqueued: made, position };
    if (saved) return { is: 'saved', saved, refresh: 'not_needed', position };
    throw new TypeError('submitted work that is neither open nor saved');
  } catch (error) {
    if (error instanceof TypeError) throw error;
    return notStarted(loaded.state, 'submission_unconfirmed', RETRY_SECONDS);
  }
};

/** Puts a reservation on its enrichment stream, or settles it at once when nothing is left to wait for. */
export const submitReservation = async (
  parts: LookupStreams,
  ip: string,
  reservation: Reservation,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<{ state: Enrichment; position: Position | null }> => {
  const command = { type: 'Submit', ip, reservation, at: context.at } as const;
  const { state, position } = await handleEnrichment(parts, ip, command, context, known);
  const waits = state.open?.reservations.some((one) => one.partner_id === reservation.partner_id);
  if (!waits) await settleReservations(parts, [reservation], context);
  return { state, position };
};
