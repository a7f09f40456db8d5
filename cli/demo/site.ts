/** The customer's pages with the pixel on them, a proxy that gives their visits made-up addresses, and the receiver of webhooks. */
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { html } from 'hono/html';

interface Visitor {
  readonly address: string;
  readonly name: string;
}

export interface SiteOptions {
  readonly port: number;
  /** The service's own URL. */
  readonly service: string;
  /** Tracker ids of the pages, in the order of `PAGES`. */
  readonly trackers: readonly string[];
  readonly visitors: readonly Visitor[];
}

const PAGES = [
  ['/', 'Fernhill Software'],
  ['/pricing', 'Pricing'],
  ['/docs', 'Documentation'],
] as const;

/** A page's script is loaded from a path that names its visitor, and sends its visits to the same path. */
const PROXIED = /^\/as\/(\d+)(\/tracking\/.*)$/;

/** Serves on 127.0.0.1 until the process ends. */
export async function startSite({ port, service, trackers, visitors }: SiteOptions): Promise<void> {
  let loads = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const [, nth, target] = PROXIED.exec(path) ?? [];
    const page = PAGES.findIndex(([of]) => of === path);
    if (target !== undefined) return forward(request, response, service, target, visitors[Number(nth)]);
    // A webhook, which the customer accepts.
    if (request.method === 'POST')
      return void request.resume().on('end', () => response.writeHead(204).end());
    if (page < 0) return void response.writeHead(404).end();
    loads += 1;
    // A number without a common factor with that of the visitors: all have their turn.
    const index = (loads * 37) % visitors.length;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
    response.end(String(pageOf(page, trackers[page] ?? '', index, visitors[index] as Visitor, service)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  server.unref();
}

/** Passes a request of the pixel on, from the visitor's address. */
function forward(
  request: IncomingMessage,
  response: ServerResponse,
  service: string,
  path: string,
  visitor: Visitor | undefined,
): void {
  const { host } = new URL(service);
  const headers = { ...request.headers, host, 'x-forwarded-for': visitor?.address };
  const passedOn = send(`${service}${path}`, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  passedOn.on('error', () => response.destroy());
  request.pipe(passedOn);
}

const pageOf = (page: number, tracker: string, index: number, { address, name }: Visitor, service: string) =>
  html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${PAGES[page]?.[1]} (demo)</title>
<style>body { font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
<nav>${PAGES.map(([path, title]) => html`<a href="${path}">${title}</a> `)}</nav>
<h1>${PAGES[page]?.[1]}</h1>
<p>This is a page of the made-up customer. It carries the pixel, and this visit of yours was sent as one from
  <strong>${address}</strong>, an address of the made-up <strong>${name}</strong>. Reload the page for another visitor.</p>
<p>The visit is in <a href="${service}/dashboard/sessions">the dashboard's sessions</a> now.</p>
<script async src="/as/${index}/tracking/a.js?tracker_id=${tracker}" data-custom='{"campaign":"demo"}'></script>
</html>
`;
