import { PAYLOAD_PREFIX } from '../../domain/webhooks/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import { inSpan } from '../../platform/spans.ts';
import { causesIn } from '../causes.ts';
import type { DeliveryClaim } from './claims.ts';
import type { SendResult } from './sender.ts';

/**
 * Runs an attempt in a span linked to the trace of its event. The span holds no URL, because receivers' URLs may contain
 * secrets, and receivers get no `traceparent`.
 */
export const inAttemptSpan = async (
  store: EventStore,
  { webhook_id, delivery_id, event_id, attempt }: DeliveryClaim,
  work: (ended: (sent: Pick<SendResult, 'http_status' | 'error'>) => void) => Promise<void>,
): Promise<void> => {
  const causes = await causesIn(store, `${PAYLOAD_PREFIX}${event_id}`);
  await inSpan(
    () => ({
      name: 'attempt delivery',
      kind: 'client',
      attributes: {
        'http.request.method': 'POST',
        'messaging.message.id': event_id,
        'doorplate.webhook_id': webhook_id,
        'doorplate.delivery_id': delivery_id,
        'doorplate.attempt': attempt,
      },
      causes,
    }),
    (note) =>
      work(({ http_status, error }) => {
        if (http_status !== null) note({ 'http.response.status_code': http_status });
        if (error !== null) note({ 'error.type': error });
      }),
  );
};
