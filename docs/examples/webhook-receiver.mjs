// A receiver of webhooks to try them with (docs/webhooks.md): verifies, deduplicates and prints. Nothing is stored.
//   WEBHOOK_SECRET=whsec_… [PORT=9000] node docs/examples/webhook-receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { WEBHOOK_SECRET = '', PORT = '9000' } = process.env;
const LARGEST_BODY = 1_048_576;
const SKEW_SECONDS = 300;
const key = Buffer.from(WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
// Whatever anybody signs without a key would be genuine.
if (key.length < 24) throw new Error('WEBHOOK_SECRET must be a signing secret (whsec_…)');
const seen = new Set();

const say = (text) => process.stdout.write(`${text}\n`);

/** The raw bytes; null where they are too many. */
const bodyOf = async (request) => {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > LARGEST_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** What is wrong with it; null: it is genuine. */
const fault = (headers, body) => {
  const part = (name, form) => form.exec(String(headers[name]))?.[0];
  const id = part('webhook-id', /^evt_[\w-]{1,100}$/);
  const timestamp = part('webhook-timestamp', /^\d{10,11}$/);
  const signatures = part('webhook-signature', /^v1,[\w+/]{43}=( v1,[\w+/]{43}=)?$/);
  if (!id || !timestamp || !signatures) return 'a header is missing, malformed or there twice';
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > SKEW_SECONDS)
    return 'the timestamp is too old or too new';
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${mac}`);
  const genuine = signatures.split(' ').some((one) => timingSafeEqual(Buffer.from(one), expected));
  if (!genuine) return 'no signature fits: is WEBHOOK_SECRET the secret of this endpoint?';
  return JSON.parse(body).id === id ? null : 'the event has another id than its header says';
};

const server = createServer(async (request, response) => {
  // Anybody can begin a request and leave: that is no reason to end.
  const body = await bodyOf(request).catch(() => null);
  if (body === null) return response.writeHead(413, { connection: 'close' }).end();
  const wrong = fault(request.headers, body);
  if (wrong !== null) {
    say(`refused: ${wrong}`);
    return response.writeHead(400).end();
  }
  const { id, type, data } = JSON.parse(body);
  say(`${seen.has(id) ? 'again' : 'new'} ${type} ${id} ${JSON.stringify(data)}`);
  seen.add(id);
  return response.writeHead(204).end();
});
server.listen(Number(PORT), '127.0.0.1', () => say(`listening on http://localhost:${server.address().port}`));
