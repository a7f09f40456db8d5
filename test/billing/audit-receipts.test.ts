import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { gatherReceipts } from '../../domain/billing/audit-reveals.ts';
import { completedReveal, revealAppend, revealStream } from '../support/reveals.ts';

it('an audit holds what it compares of a receipt, and not the result', () => {
  const { receipts, add } = gatherReceipts();
  const reveal = completedReveal({ partner_id: randomUUID() });
  const stream = revealStream(reveal.reveal_id);
  for (const [revision, { type, data }] of revealAppend(reveal).entries()) {
    add({ stream, revision, position: BigInt(revision) as never, type, data });
  }
  expect(receipts.byId.get(reveal.reveal_id)).toMatchObject({
    requested: { created_at: reveal.created_at, expires_at: reveal.expires_at },
    completed: { billable: true, hasData: true },
  });
  expect(
    JSON.stringify(receipts.byId.get(reveal.reveal_id), (_, value) =>
      typeof value === 'bigint' ? 0 : value,
    ),
  ).not.toContain('Acme');
});
