import type { CommandContext } from '../../commands/handle.ts';
import type { CaptureOutcome, CaptureVisit } from '../../commands/sessions/capture-visit.ts';
import type { CaptureRefusal } from '../../domain/sessions/install-evidence.ts';
import { OutcomeUnknown, WrongExpectedRevision } from '../../event-store/port.ts';
import type { ApiRequest, PublicRoute, Reply } from '../../http/contract/route.ts';
import { type ErrorCode, refusal } from '../../http/errors/error-catalog.ts';
import { TrackingUnavailable } from '../../http/errors/failures.ts';
import type { Config } from '../../platform/config/config.ts';
import type { RateLimiter, Verdict } from '../../platform/limits/rate-limit.ts';
import { captureVisitOperation } from '../../read-api/sessions/schemas.ts';
import {
  type CaptureBody,
  corsHeaders,
  nonVisitorReason,
  parseCapture,
  trackerNamedBy,
} from './capture-request.ts';

type Ceilings = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

type Rate = readonly [name: string, ceiling: number];

export interface CaptureRates {
  /** Spends the rate of the visitor, before anything is known of the request. */
  admitVisitor(ip: string): Verdict | Promise<Verdict>;
  /** Spends the rates of the tracker and of the service. A refusal spends neither, and gives back the visitor's. */
  admitCapture(trackerId: string, ip: string): Promise<Verdict>;
}

/**
 * Creates the three windows of captures: visitor, tracker and service. Below all three every capture is taken, whoever else sends
 * (contract, Pixel 5).
 * @param visitorOf a digest of the visitor's address or network, because rate names may be stored
 */
export function createCaptureRates(
  config: Ceilings,
  limiter: Pick<RateLimiter, 'admit' | 'giveBack'>,
  visitorOf: (ip: string) => string,
): CaptureRates {
  const ofVisitor = (ip: string): Rate => [
    `visitor ${visitorOf(ip)}`,
    config.CAPTURES_PER_SECOND_PER_VISITOR,
  ];
  return {
    admitVisitor: (ip) => limiter.admit(...ofVisitor(ip)),
    admitCapture: async (trackerId, ip) => {
      const taken: Rate[] = [];
      const wanted: Rate[] = [
        [`captures of ${trackerId}`, config.CAPTURES_PER_SECOND_PER_TRACKER],
        ['captures', config.CAPTURES_PER_SECOND],
      ];
      for (const rate of wanted) {
        const admission = limiter.admit(...rate);
        // Not awaited in a single process: no other capture meets a rate that may be given back.
        const verdict = admission instanceof Promise ? await admission : admission;
        if (verdict !== null) {
          for (const before of [ofVisitor(ip), ...taken]) await limiter.giveBack(...before);
          return verdict;
        }
        taken.push(rate);
      }
      return null;
    },
  };
}

/** A tracker as a pixel meets it. */
interface CollectingTracker {
  readonly partner_id: string;
  readonly disabled: boolean;
  readonly deleted: boolean;
}

export interface CollectDeps {
  readonly trackers: {
    find(id: string): CollectingTracker | null | Promise<CollectingTracker | null>;
    allows(tracker: CollectingTracker, origin: string): boolean;
    anyAllows(origin: string): boolean | Promise<boolean>;
  };
  readonly capture: CaptureVisit;
  /** Whether a Host is one that collects for the tracker. */
  readonly collectsOn: (host: string, trackerId: string) => boolean | Promise<boolean>;
  readonly visitorAddress: (request: ApiRequest) => string;
  readonly countryOf: (ip: string) => string | null;
  readonly rates: CaptureRates;
  /** Counts an accepted capture request durably. */
  readonly countCapture: (trackerId: string) => Promise<void>;
  readonly onCapture: (counted: { outcome: CountedOutcome } | { outcome: 'refused'; reason: string }) => void;
  /** Notes what arrived, for the install check of the tracker. */
  readonly evidence: {
    captured(
      trackerId: string,
      kind: 'visit' | 'crawler' | 'prefetch',
      visitor: { ip: string; token: string },
    ): void;
    refused(trackerId: string, reason: CaptureRefusal, header?: string): void;
    /** Notes a refusal by the visitor's rate, of a tracker that may not exist. */
    refusedVisitor(trackerId: string): void;
  };
}

type CountedOutcome = Exclude<CaptureOutcome, 'full'> | 'prefetch' | 'crawler';

const PATH = '/tracking/collect';
/** Contract, Requests 4. */
const BODY_LIMIT = 8_192;
/** The maximum that browsers honour. */
const PREFLIGHT_SECONDS = 7_200;

/** POST /tracking/collect, and its preflight for JSON. */
export function collectRoutes(deps: CollectDeps): PublicRoute[] {
  /** Requests above the visitor's rate: that is their answer, whatever their body is, but it alone names the tracker. */
  const aboveRate = new WeakMap<ApiRequest, Reply>();
  return [
    {
      method: 'POST',
      path: PATH,
      access: 'public',
      body: 'text',
      bodyLimit: BODY_LIMIT,
      operation: captureVisitOperation,
      admit: (request) => visitorAdmission(deps, aboveRate, request),
      handle: (request) => aboveRate.get(request) ?? collect(deps, request),
      beforeSend: (request, answer) => {
        const above = aboveRate.get(request);
        if (above !== undefined) return refusedVisitor(deps, request, above);
        return answer.code === undefined ? answer : refused(deps, request, answer, answer.code);
      },
    },
    {
      method: 'OPTIONS',
      path: PATH,
      access: 'public',
      body: 'none',
      bodyLimit: 0,
      handle: (request) => preflight(deps, request),
    },
  ];
}

function visitorAdmission(
  { rates, visitorAddress }: CollectDeps,
  aboveRate: WeakMap<ApiRequest, Reply>,
  request: ApiRequest,
): null | Promise<null> {
  const note = (verdict: Verdict): null => {
    const above = overCapacity(request, verdict);
    if (above !== null) aboveRate.set(request, above);
    return null;
  };
  const verdict = rates.admitVisitor(visitorAddress(request));
  return verdict instanceof Promise ? verdict.then(note) : note(verdict);
}

/** Asks for no tracker: a visitor who sends too much costs no statement. */
function refusedVisitor({ onCapture, evidence }: CollectDeps, { body }: ApiRequest, answer: Reply): Reply {
  onCapture({ outcome: 'refused', reason: answer.code ?? '' });
  const id = trackerNamedBy(body);
  if (id !== null) evidence.refusedVisitor(id);
  return answer;
}

const overCapacity = (request: ApiRequest, verdict: Verdict): Reply | null =>
  verdict && refusal(request, 'tracking_capacity', { retryAfter: verdict.retryMs / 1_000 });

async function collect(deps: CollectDeps, request: ApiRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const sent = parseCapture(request.body);
  if (typeof sent === 'string') return refusal(request, sent);
  const tracker = await deps.trackers.find(sent.tracker_id);
  if (tracker === null) return refusal(request, 'tracker_not_found');
  const origin = request.header('origin') ?? '';
  const originAllowed = deps.trackers.allows(tracker, origin);
  const code = await refusalOf(deps, request, sent.tracker_id, tracker, originAllowed);
  if (code !== null) return refusal(request, code);
  const over = overCapacity(
    request,
    await deps.rates.admitCapture(sent.tracker_id, deps.visitorAddress(request)),
  );
  if (over !== null) return over;
  const outcome = await captureAndCount(deps, request, sent, tracker);
  // Not thrown: each visit would write a line into the log for as long as the partner leaves its queue full.
  if (outcome === 'full') return refusal(request, 'tracking_unavailable');
  deps.onCapture({ outcome });
  deps.evidence.captured(
    sent.tracker_id,
    outcome === 'crawler' || outcome === 'prefetch' ? outcome : 'visit',
    { ip: deps.visitorAddress(request), token: sent.token },
  );
  return { status: 204, body: null, headers: corsHeaders(origin) };
}

async function refusalOf(
  { collectsOn }: CollectDeps,
  request: ApiRequest,
  trackerId: string,
  { deleted, disabled }: CollectingTracker,
  originAllowed: boolean,
): Promise<ErrorCode | null> {
  if (deleted) return 'tracker_deleted';
  if (!(await collectsOn(request.header('host') ?? '', trackerId))) return 'untrusted_collector';
  return originAllowed && !disabled ? null : 'tracker_origin_denied';
}

/** The visit and its count at once: the answer waits for both. What finds the queue of deliveries full is not counted. */
async function captureAndCount(
  { capture, countCapture, countryOf, visitorAddress }: CollectDeps,
  request: ApiRequest,
  sent: CaptureBody,
  { partner_id }: CollectingTracker,
): Promise<CountedOutcome | 'full'> {
  const { id, receivedAt: at } = request;
  const context: CommandContext = { correlationId: id, causationId: id, at, partnerId: partner_id };
  let counting: Promise<void> | null = null;
  const count = (): void => {
    counting ??= countCapture(sent.tracker_id);
    // Awaited below, unless the visit itself fails first.
    counting.catch(() => undefined);
  };
  const captured = (): Promise<CaptureOutcome> => {
    const ip = visitorAddress(request);
    const visit = { ...sent, partner_id, ip, visitor_country: countryOf(ip) };
    return capture(visit, context, count).catch(asUnavailable);
  };
  const without = nonVisitorReason(request);
  if (without !== null) count();
  const outcome = without ?? (await captured());
  try {
    await counting;
  } catch (cause) {
    throw new TrackingUnavailable('a capture was not counted', { cause });
  }
  return outcome;
}

/** The visit may be there or not, or its append kept conflicting: sending it again does no harm. */
function asUnavailable(cause: unknown): never {
  const unsure = cause instanceof OutcomeUnknown || cause instanceof WrongExpectedRevision;
  throw unsure ? new TrackingUnavailable(cause.message, { cause }) : cause;
}

/** Refusals too can be read by a page of the tracker, those of the shared rules included. */
async function refused(
  { trackers, onCapture, evidence }: CollectDeps,
  request: ApiRequest,
  answer: Reply,
  code: string,
): Promise<Reply> {
  onCapture({ outcome: 'refused', reason: code });
  const origin = request.header('origin');
  const id = trackerNamedBy(request.body);
  if (id === null) return answer;
  try {
    const tracker = await trackers.find(id);
    if (tracker === null) return answer;
    const reason = reasonOf(code, tracker);
    evidence.refused(id, reason, refusedHeader(request, reason));
    if (origin === undefined || !trackers.allows(tracker, origin)) return answer;
    return { ...answer, headers: { ...answer.headers, ...corsHeaders(origin) } };
  } catch {
    // The refusal itself is what matters.
    return answer;
  }
}

function reasonOf(code: string, { disabled }: CollectingTracker): CaptureRefusal {
  switch (code) {
    case 'tracker_origin_denied':
      return disabled ? 'disabled' : 'wrong_origin';
    case 'untrusted_collector':
      return 'untrusted_host';
    case 'tracker_deleted':
      return 'deleted';
    case 'invalid_custom_parameters':
      return 'invalid_labels';
    case 'tracking_capacity':
      return 'rate';
    case 'tracking_unavailable':
    case 'backend_timeout':
    case 'backend_unavailable':
    case 'api_busy':
      return 'unavailable';
    default:
      return 'invalid_body';
  }
}

function refusedHeader(request: ApiRequest, reason: CaptureRefusal): string | undefined {
  if (reason === 'wrong_origin') return request.header('origin');
  return reason === 'untrusted_host' ? request.header('host') : undefined;
}

/** A preflight names no tracker: any enabled one's page may go on, and the POST checks the origin. */
async function preflight({ trackers }: CollectDeps, request: ApiRequest): Promise<Reply> {
  const origin = request.header('origin');
  if (origin === undefined || !(await trackers.anyAllows(origin))) {
    return { status: 204, body: null, headers: { vary: 'origin' } };
  }
  const allowed = {
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'content-type',
    'access-control-max-age': String(PREFLIGHT_SECONDS),
  };
  return { status: 204, body: null, headers: { ...allowed, ...corsHeaders(origin) } };
}
