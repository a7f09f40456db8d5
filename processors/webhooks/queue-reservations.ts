import type { QueueReservation } from '../../commands/queue-reservation.ts';
import { revealEventId, sessionEventId } from '../../domain/webhooks/envelope.ts';
import type { WebhookQueue } from './queue-admission.ts';

interface Happening {
  readonly partner_id: string;
  readonly tracker_id: string;
}

interface Queued {
  readonly partner_id: string;
  readonly webhook_id: string;
  readonly event_id: string;
}

/** Reserves room in the queue for deliveries to endpoints that subscribe to new sessions. */
export const reserveForSession =
  ({ reserve }: Pick<WebhookQueue, 'reserve'>) =>
  ({
    partner_id,
    tracker_id,
    session_id,
  }: Happening & { readonly session_id: string }): Promise<QueueReservation | null> =>
    reserve({
      partner_id,
      event_id: sessionEventId(session_id),
      to: { type: 'session.created', tracker_id },
    });

/** Reserves room in the queue for deliveries to endpoints that subscribe to completed reveals. */
export const reserveForReveal =
  ({ reserve }: Pick<WebhookQueue, 'reserve'>) =>
  ({
    partner_id,
    tracker_id,
    reveal_id,
  }: Happening & { readonly reveal_id: string }): Promise<QueueReservation | null> =>
    reserve({ partner_id, event_id: revealEventId(reveal_id), to: { type: 'reveal.completed', tracker_id } });

/** Reserves room in the queue for a delivery to one endpoint. */
export const reserveForDelivery =
  ({ reserve }: Pick<WebhookQueue, 'reserve'>) =>
  ({ partner_id, webhook_id, event_id }: Queued): Promise<QueueReservation | null> =>
    reserve({ partner_id, event_id, to: { webhook_id } });
