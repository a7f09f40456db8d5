import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { hasManyLabels } from '../../domain/trackers/origin.ts';
import type { ApiRequest } from '../../http/contract/route.ts';
import { type CollectDeps, collectRoutes } from '../../write-api/sessions/collect.ts';

const ORIGIN = 'https://shop.example';
const TRACKER = { partner_id: randomUUID(), disabled: false, deleted: false };

const deps: CollectDeps<typeof TRACKER> = {
  trackers: { find: () => TRACKER, allows: () => true, anyAllows: () => true, isCostly: hasManyLabels },
  capture: async () => 'full',
  collectsOn: () => true,
  visitorAddress: () => '8.8.8.8',
  countryOf: () => null,
  admitVisitor: () => null,
  admitCapture: () => null,
  countCapture: async () => undefined,
  onCapture: () => undefined,
};

it('answers a capture that finds the queue of deliveries full, and throws nothing that would be logged', async () => {
  const collect = collectRoutes(deps).find(({ method }) => method === 'POST');
  const request = {
    id: 'a request',
    receivedAt: 0,
    query: '',
    body: { tracker_id: randomUUID(), token: randomUUID(), visit_id: randomUUID() },
    header: (name: string) => (name === 'origin' ? ORIGIN : undefined),
  } as unknown as ApiRequest;
  expect(await collect?.handle(request)).toMatchObject({ status: 503, code: 'tracking_unavailable' });
});

it.each([
  ['of a page with a usual name is not counted', 'https://www.shop.example', { status: 204 }],
  [
    'of a page with a hundred labels spends the rate of the visitor',
    `https://${'a.'.repeat(98)}shop.example`,
    { code: 'tracking_capacity' },
  ],
])('a preflight %s', async (_what, origin, answer) => {
  const routes = collectRoutes({ ...deps, admitVisitor: () => ({ retryMs: 1_000 }) });
  const preflight = routes.find(({ method }) => method === 'OPTIONS');
  const header = (name: string) => (name === 'origin' ? origin : undefined);
  const request = { id: 'a request', receivedAt: 0, query: '', header } as unknown as ApiRequest;
  expect(await preflight?.handle(request)).toMatchObject(answer);
});
