import { auditEvents, auditsStream } from '../../domain/billing/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { iso } from '../../platform/clock/clock.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** Records who had the partner's ledger audited. @throws the port's errors */
export async function recordAudit(
  store: EventStore,
  partnerId: string,
  context: CommandContext,
): Promise<void> {
  const stream = auditsStream(partnerId);
  const event = {
    type: 'billing.AuditRequested.v1',
    data: { partner_id: partnerId, requested_at: iso(context.at) },
  };
  const [last] = await Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit: 1 }));
  await appendSafely(
    store,
    stream,
    last?.revision ?? 'no_stream',
    toNewEvents(auditEvents, [event], context),
  );
}
