import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import type { Sender } from '../../processors/webhooks/sender.ts';
import { startSenderThread } from '../../processors/webhooks/sender-thread.ts';
import { authority, BODY, HEADERS, outcome, receiver, undoing } from '../support/sending.ts';

const startThread = (
  { port }: { port: number },
  {
    extraCa = authority.cert as string | null,
    onCost = (..._charge: [string, number, string]): void => undefined,
    onFailure = (_error: Error): void => undefined,
  } = {},
): Sender => {
  const thread = startSenderThread({
    policy: { allowHttp: false, allowPorts: [port], allowNetworks: ['127.0.0.0/8'], ownOrigins: [] },
    extraCa,
    isOwnDomain: async (hostname, partnerId) => hostname === '127.0.0.1' && partnerId === 'its owner',
    onCost,
    onFailure,
  });
  undoing.push(thread.close);
  return thread;
};
const post = (sender: Sender, { port }: { port: number }, partner_id = 'a partner') =>
  sender.send({ url: `https://127.0.0.1:${port}/hooks`, headers: HEADERS, body: BODY, partner_id });

it('sends requests whole, each with its own result, and nothing from the main thread', async () => {
  const target = await receiver(({ body }, response) =>
    response.writeHead(body.equals(BODY) ? 204 : 500, { 'retry-after': '7' }).end(),
  );
  const ofMainThread: unknown[] = [];
  const note = (message: unknown): void => void ofMainThread.push(message);
  subscribe('undici:client:sendHeaders', note);
  undoing.push(() => unsubscribe('undici:client:sendHeaders', note));
  const thread = startThread(target);
  const other = thread.send({
    url: `https://127.0.0.1:${target.port}/hooks`,
    headers: HEADERS,
    body: Buffer.from('another body'),
    partner_id: 'a partner',
  });
  expect(await post(thread, target)).toEqual(outcome(204, null));
  expect(await other).toEqual(outcome(500, 'http_status', 7_000));
  expect(target.requests).toHaveLength(2);
  expect(ofMainThread).toEqual([]);
});

it("requests nothing from a partner's own active custom domain, and does for other partners", async () => {
  const target = await receiver();
  const thread = startThread(target);
  expect(await post(thread, target, 'its owner')).toEqual(outcome(null, 'own_origin'));
  expect(await target.connections()).toBe(0);
  expect(await post(thread, target, 'another partner')).toEqual(outcome(204, null));
});

it.each(['http://127.0.0.1/hooks', 'https://', 'https://127.0.0.1:1/hooks'])(
  'blocks %s as its policy says, also of the owner',
  async (url) => {
    const thread = startThread({ port: 8_443 });
    const request = { url, headers: HEADERS, body: BODY, partner_id: 'its owner' };
    expect(await thread.send(request)).toEqual(outcome(null, 'blocked_address'));
  },
);

it('charges the partner before its attempt ends', async () => {
  const charged: [string, number, string][] = [];
  const target = await receiver();
  const thread = startThread(target, { extraCa: null, onCost: (...charge) => void charged.push(charge) });
  expect(await post(thread, target, 'its partner')).toEqual(outcome(null, 'tls'));
  expect(charged).toEqual([['its partner', expect.any(Number), 'failed']]);
});

it('is started again where it ends, and its attempts are left without an outcome', async () => {
  const threads: Worker[] = [];
  const note = (message: unknown): void => {
    const { worker } = message as { worker: Worker };
    threads.push(worker);
    // The next one before it can send.
    if (threads.length === 2) void worker.terminate();
  };
  subscribe('worker_threads', note);
  undoing.push(() => unsubscribe('worker_threads', note));
  const failures: Error[] = [];
  const target = await receiver((_request, response) => {
    if (target.requests.length > 2) response.writeHead(204).end();
  });
  const sender = startThread(target, { onFailure: (error) => void failures.push(error) });
  const attempts = Promise.allSettled([post(sender, target), post(sender, target)]);
  await expect.poll(() => target.requests.length).toBe(2);
  await threads[0]?.terminate();
  expect((await attempts).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect.poll(() => threads.length).toBe(3);
  expect(failures).toHaveLength(2);
  expect(await post(sender, target)).toEqual(outcome(204, null));
});

it('is closed although a receiver does not answer', async () => {
  const target = await receiver(() => undefined);
  const thread = startThread(target);
  const attempt = post(thread, target);
  void attempt.catch(() => undefined);
  await expect.poll(() => target.requests.length).toBe(1);
  await thread.close();
  expect(await Promise.race([attempt, 'no outcome'])).toBe('no outcome');
});
