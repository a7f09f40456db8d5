/**
 * Answers lookups from an MMDB file with a bare Fastify route and `maxmind`. Argument: `{file}`. Prints `{port}`; ends when its input
 * ends.
 */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { open, type Response } from 'maxmind';

const { file } = JSON.parse(process.argv[2] ?? '') as { file: string };
const companies = await open<Response>(file);
const app = Fastify();
app.get<{ Querystring: { ip: string } }>('/v1/lookup', async ({ query: { ip } }) => ({
  ip,
  ...(companies.get(ip) as object | null),
}));
await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ port: (app.server.address() as AddressInfo).port })}\n`);
process.stdin.resume().on('end', () => process.exit(0));
