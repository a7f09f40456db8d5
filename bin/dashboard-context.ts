import type { CommandContext } from '../commands/handle.ts';
import type { Visit } from '../dashboard/visit.ts';

/** Makes the context of a command from the dashboard request and its user. */
export const visitContext = ({ request, user }: Visit): CommandContext => ({
  correlationId: request.id,
  causationId: request.id,
  at: request.receivedAt,
  partnerId: user.partner_id,
  userId: user.user_id,
});
