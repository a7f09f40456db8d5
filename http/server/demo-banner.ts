import type { FastifyInstance } from 'fastify';

/** Where the content of a page begins. */
const CONTENT = /<main(?: [^<>]*)?>|<div class="intro">/;
const BANNER =
  '<p class="demo" role="note"><strong>Demo.</strong> Companies, ISPs, visits and who has which address are made up. Nothing leaves this machine.</p>';

/** Makes every page of a demo's server say so, in its title and at the top of its content. */
export function sayDemo(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }) => {
    // A packed page could not be changed.
    headers['accept-encoding'] = '';
  });
  app.addHook('onSend', async (_request, reply, payload) =>
    String(reply.getHeader('content-type')).startsWith('text/html') && payload !== null
      ? String(payload).replace('<title>', '<title>Demo · ').replace(CONTENT, `$&${BANNER}`)
      : payload,
  );
}
