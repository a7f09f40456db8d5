/** A stand-in for the service: serves the pixel's real bytes and records its requests. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { PIXEL_FILE } from '../../../web/pixel/build.ts';
import { closed, listening } from '../../support/customer-site.ts';

export interface Visit {
  readonly tracker_id: string;
  readonly token: string;
  readonly visit_id: string;
  readonly custom: unknown;
}

interface Received {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Collector {
  readonly origin: string;
  /** All requests to `/tracking/collect`, including refused ones and preflights. */
  readonly received: Received[];
  /** Their bodies in order of arrival. */
  visits(): Visit[];
  /** Statuses of the next answers; then 204 again. */
  answerNext(...statuses: number[]): void;
  /** Delays all answers until the returned function is called. */
  hold(): () => void;
  /** Bodies of the requests that were answered, and of those that the browser gave up before. */
  readonly answered: string[];
  readonly abandoned: string[];
  close(): Promise<void>;
}

export const startCollector = async (): Promise<Collector> => {
  const script = readFileSync(PIXEL_FILE);
  const received: Received[] = [];
  const statuses: number[] = [];

  const answered: string[] = [];
  const abandoned: string[] = [];
  let held: Promise<void> | undefined;

  const collect = async (request: IncomingMessage, response: ServerResponse): Promise<number> => {
    const { method = '', headers } = request;
    const body = await text(request);
    response.on('close', () => void (response.writableFinished ? answered : abandoned).push(body));
    received.push({ method, headers, body });
    await held;
    return statuses.shift() ?? 204;
  };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    response
      .setHeader('access-control-allow-origin', request.headers.origin ?? '')
      .setHeader('vary', 'origin');
    if (pathname === '/tracking/a.js') {
      response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' }).end(script);
    } else if (pathname === '/tracking/collect') {
      response.writeHead(await collect(request, response)).end();
    } else {
      response.writeHead(404).end();
    }
  });
  const port = await listening(server);
  return {
    origin: `http://localhost:${port}`,
    received,
    visits: () => received.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body)),
    answerNext: (...next) => void statuses.push(...next),
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    answered,
    abandoned,
    close: () => closed(server),
  };
};
