import { refusal } from './error-catalog.ts';
import { healthOperation } from './health-operation.ts';
import type { Answer, PublicRoute } from './route.ts';

const ok: Answer = { status: 200, body: '{"status":"ok"}', headers: { 'cache-control': 'no-store' } };

/** GET /healthz (contract, Operation 3): 503 while `isHealthy` says so, for example during a shutdown. */
export function healthRoute(isHealthy: () => boolean): PublicRoute {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'public',
    body: 'none',
    bodyLimit: 0,
    handle: (request) => (isHealthy() ? ok : refusal(request, 'service_unavailable')),
    operation: healthOperation,
  };
}
