/**
 * Serves given bytes from a bare Fastify route in a separate process: the cost of Node, Fastify and the kernel for a
 * request. Argument: `BareAnswer`. Prints `{port, quotaPort}`; answers at the second have the RateLimit headers. Ends when its
 * input ends.
 */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyReply } from 'fastify';
import type { ApiKey, Route } from '../http/contract/route.ts';
import { createCallRates } from '../http/server/call-rates.ts';
import { setQuota } from '../http/server/replies.ts';
import { createLocalLimiter } from '../platform/limits/rate-limit.ts';

export interface BareAnswer {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly status: number;
  /** '' where the status has none. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const { method, path, status, body, headers } = JSON.parse(process.argv[2] ?? '') as BareAnswer;
const rates = createCallRates(createLocalLimiter({ now: Date.now }), {
  API_REQUESTS_PER_SECOND: 1,
  WEBHOOK_MANAGEMENT_PER_MINUTE: 1,
});
const key: ApiKey = {
  kind: 'key',
  key_id: randomUUID(),
  partner_id: randomUUID(),
  name: 'bench',
  requests_per_second: 100_000,
  new_enrichments_per_day: null,
  pending_enrichments: 1,
  company_signals: false,
};
const route: Route = {
  method,
  path,
  access: 'key',
  body: 'none',
  bodyLimit: 0,
  handle: () => ({ status, body }),
};
/** `addQuota` adds the RateLimit headers, made for each request as the service makes them. */
const serve = async (addQuota: (reply: FastifyReply) => void): Promise<number> => {
  const app = Fastify();
  app.route({
    method,
    url: path,
    handler: (_request, reply) => {
      reply.code(status).headers(headers);
      addQuota(reply);
      return reply.send(body);
    },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
};

// In one process, because two of the same code differ by more than what the headers cost.
const port = await serve(() => undefined);
const quotaPort = await serve((reply) => setQuota(reply, rates.quotaOf(key, route)));
process.stdout.write(`${JSON.stringify({ port, quotaPort })}\n`);
process.stdin.resume().on('end', () => process.exit(0));
