import { randomUUID } from 'node:crypto';
import type { RevealToBill } from '../../commands/billing/bill-reveals.ts';
import type { TestStack } from './test-stack.ts';

/** A completed reveal at a position of the log, to be billed. */
export const aCompletion = (stack: TestStack, partner_id: string, position: bigint): RevealToBill => ({
  reveal: {
    partner_id,
    reveal_id: randomUUID(),
    tracker_id: randomUUID(),
    key_id: 'key_a',
    user_id: null,
    completed_at: '2026-03-01T12:00:00.000Z',
    billable: true,
    position,
  },
  context: { ...stack.context(), causationId: `completion ${position}` },
});
