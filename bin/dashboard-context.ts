import type { CommandContext } from '../commands/handle.ts';
import type { Visit } from '../dashboard/visit.ts';

/** What a command carries of the page that gave it, and of its user. */
export const visitContext = ({ request, user }: Visit): CommandContext => ({
  correlationId: request.id,
  causationId: request.id,
  at: request.receivedAt,
  partnerId: user.partner_id,
  userId: user.user_id,
});
