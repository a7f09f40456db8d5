/** The customer's pages with the pixel, a proxy that gives each visit of them a made-up address, and the receiver of webhooks. */
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { html } from 'hono/html';
import type { Organisation } from './organisations.ts';

const PAGES = [
  ['/', 'Fernhill Software'],
  ['/pricing', 'Pricing'],
  ['/docs', 'Documentation'],
] as const;
/** A page's script has a path that names its visitor, and sends its visits below the same path. */
const PROXIED = /^\/as\/([\d.]+)(\/tracking\/.*)$/;

/** Serves on 127.0.0.1 until the process ends. `service`: the URL of Doorplate; `trackers`: ids in the order of `PAGES`. */
export async function startSite(
  port: number,
  service: string,
  trackers: readonly string[],
  organisations: readonly Organisation[],
) {
  let loads = 0;
  const server = createServer((request, response) => {
    const [, address, path] = PROXIED.exec(request.url ?? '') ?? [];
    if (path !== undefined) return passOn(request, response, `${service}${path}`, address);
    // A webhook: the customer accepts it.
    if (request.method === 'POST')
      return void request.resume().on('end', () => response.writeHead(204).end());
    const page = PAGES.findIndex(([of]) => of === request.url);
    if (page < 0) return void response.writeHead(404).end();
    const { name, network } = organisations[loads++ % organisations.length] as Organisation;
    const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
    response.writeHead(200, headers).end(`<!doctype html>
${html`<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Demo · ${PAGES[page]?.[1]}</title><link rel="icon" href="data:,">
<style>html { background: Canvas } body { font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
<nav>${PAGES.map(([to, title]) => html`<a href="${to}">${title}</a> `)}</nav>
<main><h1>${PAGES[page]?.[1]}</h1>
<p>A page of the made-up customer, with the pixel on it. Your visit was sent as one from <strong>${network}.10</strong>, which
  belongs to <strong>${name}</strong> here: both are made up. Load the page again to be somebody else.</p>
<p><a href="${service}/dashboard/sessions">See the visit in the dashboard</a></p></main>
<script async src="/as/${network}.10/tracking/a.js?tracker_id=${trackers[page]}" data-custom='{"campaign":"demo"}'></script>`}`);
  });
  await new Promise<void>((listening, failed) => {
    server.once('error', failed).listen(port, '127.0.0.1', listening);
  });
}

/** Passes a request of the pixel on, from this address. */
function passOn(request: IncomingMessage, response: ServerResponse, url: string, address = ''): void {
  const headers = { ...request.headers, host: new URL(url).host, 'x-forwarded-for': address };
  const passed = send(url, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  request.pipe(passed.on('error', () => response.destroy()));
}
