// Receives webhooks: verifies, deduplicates and prints them. Nothing is stored.
//   WEBHOOK_SECRET=whsec_… [PORT=9000] node receive-webhooks.ts
import { createServer, type IncomingMessage } from 'node:http';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from 'doorplate-client';

const { WEBHOOK_SECRET = '', PORT = '9000' } = process.env;
const LARGEST_BODY = 1_048_576;
const seen = new Set<string>();

/** The raw bytes; null when they are too many. @throws when the sender disconnects before the end */
const bodyOf = async (request: IncomingMessage): Promise<Buffer | null> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > LARGEST_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const summaryOf = (event: WebhookEvent): string => {
  switch (event.type) {
    case 'session.created':
      return `a visitor from ${event.data.visitor_country ?? 'somewhere'}`;
    case 'reveal.completed':
      return event.data.result.company?.name ?? 'no known company';
    case 'webhook.test':
      return event.data.message;
    default:
      return 'something newer than this program';
  }
};

const server = createServer(async (request, response) => {
  // A client that disconnects early must not end the server.
  const body = await bodyOf(request).catch(() => null);
  if (body === null) return response.writeHead(413, { connection: 'close' }).end();
  try {
    const event = verifyWebhook({ secret: WEBHOOK_SECRET, headers: request.headers, body });
    const { id, type } = event;
    console.log(JSON.stringify({ id, type, again: seen.has(id), summary: summaryOf(event) }));
    seen.add(id);
    return response.writeHead(204).end();
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    console.log(JSON.stringify({ refused: error.fault }));
    return response.writeHead(400).end();
  }
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(JSON.stringify({ listening: Number(PORT) })));
