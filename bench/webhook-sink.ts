/**
 * Receives webhooks over HTTPS and answers 204 in a separate process: the receiver of delivery rows. Argument:
 * `Sink`. Prints `{port}`, then answers each line: `{}` with `{received}`, the requests so far; `{"note":true}` with
 * the same, and records from then on when events came; `{"noted":true}` with `{times}`: the label `n` of each
 * session, and when its event came first (milliseconds since the epoch). The path `/hangs` is never answered. Ends when its
 * input ends.
 */
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';

export interface Sink {
  readonly key: string;
  readonly cert: string;
}

const { key, cert } = JSON.parse(process.argv[2] ?? '') as Sink;
let received = 0;
let times: Map<number, number> | null = null;

const note = async (request: IncomingMessage, noted: Map<number, number>): Promise<void> => {
  const at = performance.timeOrigin + performance.now();
  const { data } = JSON.parse((await buffer(request)).toString());
  const n = data.custom?.n;
  if (n !== undefined && !noted.has(n)) noted.set(n, at);
};

const server = createServer({ key, cert, keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url === '/hangs') return;
  if (times) void note(request, times);
  else request.resume();
  request.on('end', () => {
    received += 1;
    response.writeHead(204).end();
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as { note?: true; noted?: true };
  if (asked.note) times = new Map();
  process.stdout.write(`${JSON.stringify(asked.noted ? { times: [...(times ?? [])] } : { received })}\n`);
}
process.exit(0);
