import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A customer's website on its own port: `http://localhost` may be a tracker's origin. */
export interface CustomerSite {
  readonly origin: string;
  /** Serves a page from now on and returns its URL. */
  page(path: string, body: string, headers?: Readonly<Record<string, string>>): string;
  /** The query of the next request for a path. */
  asked(path: string): Promise<string>;
  /** Delays the response of a path until the returned function is called. */
  hold(path: string): () => void;
  close(): Promise<void>;
}

export const startCustomerSite = async (): Promise<CustomerSite> => {
  const pages = new Map<string, { body: string; headers: Readonly<Record<string, string>> }>();
  const awaited = new Map<string, (query: string) => void>();
  const held = new Map<string, Promise<void>>();
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
    awaited.get(pathname)?.(search);
    await held.get(pathname);
    const { body, headers } = pages.get(pathname) ?? { body: '', headers: {} };
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers })
      .end(`<!doctype html><title>A customer's page</title>${body}`);
  });
  const port = await listening(server);
  const origin = `http://localhost:${port}`;
  return {
    origin,
    page: (path, body, headers = {}) => {
      pages.set(path, { body, headers });
      return `${origin}${path}`;
    },
    asked: (path) => new Promise((resolve) => awaited.set(path, resolve)),
    hold: (path) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(path, promise);
      return resolve;
    },
    close: () => closed(server),
  };
};

/** On a free port of every loopback address that a browser tries for `localhost`. */
export const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return (server.address() as AddressInfo).port;
};

export const closed = async (server: Server): Promise<void> => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
};
