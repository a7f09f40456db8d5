/**
 * Serves given bytes from a bare Fastify route in a separate process: the cost of Node, Fastify and the kernel for a
 * request. Argument: `BareAnswer`. Prints `{port}`, ends when its input ends.
 */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';

export interface BareAnswer {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly status: number;
  /** '' where the status has none. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const { method, path, status, body, headers } = JSON.parse(process.argv[2] ?? '') as BareAnswer;
const app = Fastify();
app.route({
  method,
  url: path,
  handler: (_request, reply) => reply.code(status).headers(headers).send(body),
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ port: (app.server.address() as AddressInfo).port })}\n`);
process.stdin.resume().on('end', () => process.exit(0));
