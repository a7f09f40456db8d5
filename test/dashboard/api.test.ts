import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { createApi } from '../../dashboard/api.ts';
import { answerWaitMs } from '../../http/on-behalf-of.ts';
import type { ApiRequest, PartnerRoute } from '../../http/route.ts';

const BODY = JSON.stringify({ text: 'x'.repeat(9_000_000) });
const ROUTE: PartnerRoute = {
  method: 'GET',
  path: '/v1/long',
  access: 'partner',
  body: 'none',
  bodyLimit: 0,
  handle: () => ({ status: 200, body: BODY }),
};

it('a partner pays for a long answer of the API that a page of the dashboard asks for and does not show', async () => {
  const user = {
    user_id: randomUUID(),
    partner_id: randomUUID(),
    name: 'anna',
    partner_name: 'A',
    is_first: false,
  };
  // What is charged is forgiven with time, which a busy machine takes.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  const api = createApi({ routes: [ROUTE], admit: () => null })({} as ApiRequest, user);
  await api('GET', '/v1/long');
  expect(answerWaitMs(user.partner_id)).toBeGreaterThan(100);
  vi.restoreAllMocks();
});
