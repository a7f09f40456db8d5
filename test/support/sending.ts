import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeAll } from 'vitest';
import type { Resolver } from '../../processors/webhooks/delivery/addresses.ts';
import { createSender, type Sender, type SenderLimits } from '../../processors/webhooks/delivery/sender.ts';
import { type Authority, type Certificate, makeAuthority } from './certificates.ts';
import { type Listening, type Received, startRawReceiver, startReceiver } from './receiver.ts';

export const NOON = Date.UTC(2026, 2, 14, 12);
export const LIMITS: SenderLimits = { totalMs: 400, dnsMs: 200, connectMs: 200 };
const UNHURRIED: SenderLimits = { totalMs: 10_000, dnsMs: 5_000, connectMs: 5_000 };
export const BODY = Buffer.from(JSON.stringify({ id: 'evt_test_1', text: 'é' }));
export const HEADERS = { 'content-type': 'application/json', 'webhook-id': 'evt_test_1' };
export const NAME = 'hooks.example';

/** Resolves the name to the loopback address only. */
export const RESOLVER: Resolver = { resolve4: async () => ['127.0.0.1'], resolve6: async () => [] };

export let authority: Authority;
export let certificate: Certificate;
beforeAll(async () => {
  authority = await makeAuthority();
  certificate = await authority.issue([NAME, '127.0.0.1']);
  // The first handshake of a process takes longer than the short limits of the tests on a busy machine.
  const target = await receiver();
  await post(senderTo(target, { limits: UNHURRIED }), target);
});

export const undoing: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undoing.splice(0).reverse()) await undo();
});

export const senderTo = (
  { port }: { port: number },
  {
    limits = LIMITS,
    resolver = RESOLVER,
    extraCa = authority.cert as string | null,
    isOwnDomain = async (_hostname: string, _partnerId: string) => false,
  } = {},
): Sender => {
  const policy = { allowHttp: true, allowPorts: [port], allowNetworks: ['127.0.0.0/8'], ownOrigins: [] };
  const sender = createSender({
    policy,
    clock: { now: () => NOON },
    resolver,
    limits,
    extraCa,
    isOwnDomain,
  });
  undoing.push(sender.close);
  return sender;
};

export const urlOf = ({ port }: { port: number }) => `https://${NAME}:${port}/hooks/1?a=b`;
export const post = (sender: Sender, target: { port: number }, partner_id = 'a partner') =>
  sender.send({ url: urlOf(target), headers: HEADERS, body: BODY, partner_id });

export const receiver = async (answer?: (request: Received, response: ServerResponse) => void) => {
  const started = await startReceiver({ tls: certificate, ...(answer && { answer }) });
  undoing.push(started.close);
  return started;
};

export const raw = async (treat: (socket: Socket) => void): Promise<Listening> => {
  const started = await startRawReceiver(treat, { tls: certificate });
  undoing.push(started.close);
  return started;
};

export const outcome = (
  http_status: number | null,
  error: string | null,
  retry_after_ms: number | null = null,
) => ({
  http_status,
  error,
  retry_after_ms,
});
