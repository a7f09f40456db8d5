/**
 * Serves a Fastify route that makes one durable insert per request, on its own PostgreSQL: the minimum of a service
 * with a durable answer. Argument: `{folder}`, the data folder. Prints `{port, pid, url}`, `pid` being PostgreSQL's;
 * ends when its input ends.
 */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import pg from 'pg';
import { postmasterOf } from '../cli/installation/data-folder.ts';
import { startEmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import { COUNTING_STATEMENTS } from './support/statements.ts';

const { folder } = JSON.parse(process.argv[2] ?? '') as { folder: string };
const log = createLogger({ level: 'warn', destination: 'stderr' });
const postgres = await startEmbeddedPostgres({ dataDir: folder, log, moreSettings: COUNTING_STATEMENTS });
const pool = new pg.Pool({ connectionString: postgres.url, max: 10 });
await pool.query(
  'create table if not exists request (id uuid primary key, at timestamptz not null, body text)',
);

const app = Fastify();
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
app.post('/insert', async (request, reply) => {
  await pool.query({
    name: 'insert_request',
    text: 'insert into request (id, at, body) values ($1, $2, $3)',
    values: [randomUUID(), new Date(), request.body],
  });
  return reply.code(204).send();
});
await app.listen({ host: '127.0.0.1', port: 0 });
const { port } = app.server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ port, pid: postmasterOf(folder), url: postgres.url })}\n`);
process.stdin.resume().on('end', async () => {
  await app.close();
  await pool.end();
  await postgres.stop();
  process.exit(0);
});
