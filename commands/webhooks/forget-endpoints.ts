import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type CommandContext, handle } from '../handle.ts';
import { loadFromSnapshot } from '../snapshots.ts';
import { endpointAggregate } from './manage-endpoints.ts';

/** Forgets a partner's endpoints deleted more than 90 days ago, by a snapshot without them. Idempotent. */
export const forgetEndpoints = async (
  store: EventStore,
  partnerId: string,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'Forget', partner_id: partnerId, at: context.at } as const;
  const stream = endpointsStream(partnerId);
  const known = await loadFromSnapshot(store, endpointAggregate, stream);
  await handle(store, endpointAggregate, stream, command, context, known);
};
