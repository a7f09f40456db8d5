import { z } from 'zod';
import 'zod-openapi';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { savedResultFields } from '../lookup/schemas.ts';
import { customParameters } from '../sessions/schemas.ts';

const revealResult = z.object({ status: z.literal('complete'), ...savedResultFields }).meta({
  id: 'RevealResult',
  description: 'The saved result as it was when the reveal completed; it does not change after that.',
});

export const revealBody = z
  .object({
    reveal_id: z.uuid(),
    session_id: z.uuid(),
    tracker_id: z.uuid(),
    custom: customParameters.optional(),
    status: z.enum(['pending', 'complete']),
    billable: z
      .boolean()
      .meta({ description: 'Whether it has one recorded unit; reading it never charges.' }),
    billable_units: z.union([z.literal(0), z.literal(1)]),
    created_at: timestamp,
    completed_at: timestamp.nullable(),
    expires_at: timestamp.meta({ description: "The session's own." }),
    result: revealResult.nullable(),
    status_url: z.string().meta({ description: 'Relative URL of the receipt.' }),
    request_id: requestId,
  })
  .meta({ id: 'Reveal', description: 'The receipt of a reveal.' });
export type RevealBody = z.output<typeof revealBody>;

/** The receipt that an event carries. */
export const completedReveal = revealBody
  .omit({ request_id: true })
  .extend({ status: z.literal('complete'), completed_at: timestamp, result: revealResult })
  .meta({ id: 'CompletedReveal', description: 'The receipt of a reveal that is complete.' });
