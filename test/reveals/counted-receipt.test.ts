import { expect, it, vi } from 'vitest';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import type { PartnerRequest } from '../../http/contract/route.ts';
import { countedReceipt } from '../../read-api/reveals/schemas.ts';

it('does not count a call that is refused because the labels of the session cannot be read', async () => {
  const countCall = vi.fn(async () => undefined);
  const customOf = () => Promise.reject(new Error('no connection'));
  const request = { caller: { partner_id: 'p' } } as PartnerRequest;
  const reveal = { session_id: 's', tracker_id: 't', completed: null } as Reveal;

  await expect(countedReceipt({ customOf, countCall }, request, reveal)).rejects.toThrow('no connection');
  expect(countCall).not.toHaveBeenCalled();
});
