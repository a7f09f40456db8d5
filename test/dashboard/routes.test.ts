import { expect, it } from 'vitest';
import { type DashboardDeps, dashboardRoutes } from '../../dashboard/routes.ts';
import type { ApiRequest } from '../../http/route.ts';
import { createSemaphores } from '../../platform/semaphore.ts';

const USER = { user_id: 'u', partner_id: 'p', name: 'anna', partner_name: 'A', is_first: false };

it('makes few pages of a partner at once, and the others when these are made', async () => {
  const made: (() => void)[] = [];
  const deps: DashboardDeps = {
    routes: [],
    admit: () => null,
    findLogin: async () => USER,
    admitForm: async () => null,
    admitPage: async () => null,
    makePage: createSemaphores({ limit: 2 }).enter,
    open: [],
    pages: [
      {
        method: 'GET',
        path: '/dashboard/long',
        handle: () =>
          new Promise((resolve) => {
            made.push(() => resolve({ status: 200, body: 'long' }));
          }),
      },
    ],
  };
  const page = dashboardRoutes(deps).find(({ path }) => path === '/dashboard/long');
  const request = { query: '', params: {}, header: () => `__Host-doorplate=${'a'.repeat(43)}` };
  const pages = Array.from({ length: 5 }, () => page?.handle(request as unknown as ApiRequest as never));
  for (const atOnce of [2, 4, 5]) {
    await expect.poll(() => made.length).toBe(atOnce);
    for (const end of made) end();
  }
  expect(await Promise.all(pages)).toEqual(Array(5).fill({ status: 200, body: 'long' }));
});
