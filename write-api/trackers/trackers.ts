import type { NewTracker, TrackerCommands } from '../../commands/trackers/manage-trackers.ts';
import type { Result } from '../../domain/kernel/decider.ts';
import type { TrackerRefusal } from '../../domain/trackers/trackers.ts';
import type { Position } from '../../event-store/port.ts';
import { fieldNamesOf, isStrings, MANAGEMENT_BODY_LIMIT, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import {
  createTrackerOperation,
  deleteTrackerOperation,
  disableTrackerOperation,
  enableTrackerOperation,
  trackerAnswer,
  trackerUpdate,
  updateTrackerOperation,
} from '../../read-api/trackers/schemas.ts';

export interface TrackerRouteDeps {
  readonly commands: TrackerCommands;
  readonly publicUrl: string;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Called with a changed tracker, once the read models have it. */
  readonly changed: (trackerId: string) => void;
}

const shape = fieldNamesOf(trackerUpdate);

/** POST, DELETE …: all that changes a tracker. */
export function trackerRoutes(deps: TrackerRouteDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, { bodyLimit: MANAGEMENT_BODY_LIMIT, budget: 'changes' });
  return [
    route('POST', '/v1/trackers', 'json', createTrackerOperation, create),
    route('PATCH', '/v1/trackers/:tracker_id', 'json', updateTrackerOperation, update),
    route('DELETE', '/v1/trackers/:tracker_id', 'none', disableTrackerOperation, (deps, request) =>
      changeStatus(deps, request, 'Disable'),
    ),
    route('POST', '/v1/trackers/:tracker_id/enable', 'optional', enableTrackerOperation, (deps, request) =>
      changeStatus(deps, request, 'Enable'),
    ),
    route('POST', '/v1/trackers/:tracker_id/delete', 'optional', deleteTrackerOperation, remove),
  ];
}

/** The given fields of a tracker, or the refusal of the first that is no text or list of texts. */
function fieldsOf(
  body: unknown,
): Partial<NewTracker> | 'invalid_body' | 'invalid_tracker' | 'invalid_origin' {
  const given = shape.safeParse(body);
  if (!given.success) return 'invalid_body';
  const { name, origins, customer_reference } = given.data;
  if (name !== undefined && typeof name !== 'string') return 'invalid_tracker';
  if (
    customer_reference !== undefined &&
    customer_reference !== null &&
    typeof customer_reference !== 'string'
  ) {
    return 'invalid_tracker';
  }
  if (origins !== undefined && !isStrings(origins)) return 'invalid_origin';
  return {
    ...(name === undefined ? {} : { name }),
    ...(origins === undefined ? {} : { origins }),
    ...(customer_reference === undefined ? {} : { customer_reference }),
  };
}

async function create(deps: TrackerRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const fields = fieldsOf(request.body);
  if (typeof fields === 'string') return refusal(request, fields);
  const { name, origins, customer_reference = null } = fields;
  if (name === undefined) return refusal(request, 'invalid_tracker');
  if (origins === undefined) return refusal(request, 'invalid_origin');
  const { partner_id } = request.caller;
  const tracker = { name, origins, customer_reference };
  const result = await deps.commands.create(partner_id, tracker, commandContext(request));
  return answer(deps, request, result, ({ tracker }) => trackerAnswer(request, 201, tracker, deps.publicUrl));
}

async function update(deps: TrackerRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const fields = fieldsOf(request.body);
  if (fields === 'invalid_body') return refusal(request, fields);
  const trackerId = uuidParam(request, 'tracker_id');
  if (trackerId === null) return refusal(request, 'invalid_tracker');
  if (typeof fields === 'string') return refusal(request, fields);
  const { partner_id } = request.caller;
  const result = await deps.commands.update(partner_id, trackerId, fields, commandContext(request));
  return answer(deps, request, result, ({ tracker }) => trackerAnswer(request, 200, tracker, deps.publicUrl));
}

async function changeStatus(
  deps: TrackerRouteDeps,
  request: PartnerRequest,
  type: 'Disable' | 'Enable',
): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const trackerId = uuidParam(request, 'tracker_id');
  if (trackerId === null) return refusal(request, 'invalid_tracker');
  const { partner_id } = request.caller;
  const result = await deps.commands.changeStatus(type, partner_id, trackerId, commandContext(request));
  return answer(deps, request, result, ({ tracker }) => trackerAnswer(request, 200, tracker, deps.publicUrl));
}

async function remove(deps: TrackerRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const id = uuidParam(request, 'tracker_id');
  if (id === null) return refusal(request, 'invalid_tracker');
  const { partner_id } = request.caller;
  const result = await deps.commands.delete(partner_id, id, commandContext(request));
  return answer(deps, request, result, ({ deleted_at }) => ({
    status: 200,
    body: JSON.stringify({ id, deleted: true, deleted_at, request_id: request.id }),
  }));
}

async function answer<T extends { readonly tracker_id: string; readonly position: Position | null }>(
  { projected, changed }: TrackerRouteDeps,
  request: PartnerRequest,
  result: Result<T, TrackerRefusal>,
  success: (done: T) => Reply,
): Promise<Reply> {
  if (!result.ok) return refusal(request, result.refusal);
  // So that the caller's next list, on whichever node, shows it.
  await projected(result.value.position);
  changed(result.value.tracker_id);
  return success(result.value);
}
