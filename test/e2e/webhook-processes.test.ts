import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { administer, type TestDatabase, testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { type Service, startService } from '../support/service.ts';
import { describeOnStores } from '../support/stores.ts';
import {
  type AllowedReceivers,
  allowReceivers,
  type PartnerWebhooks,
  type TestWebhook,
  verified,
  webhooksOf,
} from '../support/webhook-sink.ts';

const PAGE = 'https://www.example.com';
const CONCURRENCY = 4;
const EVENTS = 24;
const ROOMY_MS = 30_000;
/** Its receiver answers only when it is released; the other one answers at once. */
const HOLDING = '/holding';
const PROMPT = '/prompt';

interface Held {
  readonly eventId: string;
  readonly response: ServerResponse;
}

describeOnStores('webhooks of two api and two worker processes', (env) => {
  let database: TestDatabase;
  let allowed: AllowedReceivers;
  let sink: Receiver;
  let nodes: readonly [Service, Service];
  let workers: readonly [Service, Service];
  let key: string;
  let tracker: string;
  let at: readonly [PartnerWebhooks, PartnerWebhooks];
  let hook: TestWebhook;
  let other: TestWebhook;
  /** The open requests at the receiver that holds its answers. */
  const held = new Set<Held>();
  let most = 0;
  let holds = true;
  /** Event ids: of accepted requests, and of interrupted ones. */
  const taken: string[] = [];
  const cut: string[] = [];

  const answer = ({ path, headers }: Received, response: ServerResponse): void => {
    if (path !== HOLDING) return void response.writeHead(204).end();
    const request = { eventId: String(headers['webhook-id']), response };
    held.add(request);
    most = Math.max(most, held.size);
    response.on('close', () => {
      if (held.delete(request)) cut.push(request.eventId);
    });
    if (!holds) release();
  };
  const release = (): void => {
    for (const { eventId, response } of held) {
      response.writeHead(204).end();
      taken.push(eventId);
    }
    held.clear();
  };

  beforeAll(async () => {
    const port = await freePort();
    [database, allowed] = await Promise.all([testDatabase(), allowReceivers([port])]);
    sink = await startReceiver({ tls: allowed.tls, port, answer });
    const common = { ...env, ...allowed.env, WEBHOOK_CONCURRENCY: String(CONCURRENCY) };
    const start = (role: 'api' | 'workers') => startService({ role, databaseUrl: database.url, env: common });
    workers = await Promise.all([start('workers'), start('workers')]);
    nodes = await Promise.all([start('api'), start('api')]);
    key = (await nodes[0].newKey({ requests_per_second: 100_000 })).api_key;
    at = [webhooksOf(nodes[0], key), webhooksOf(nodes[1], key)];
    const body = { name: 'a site', origins: [PAGE] };
    tracker = (await nodes[0].call('POST', '/v1/trackers', { key, body })).body.id;
    hook = await at[0].create(`https://127.0.0.1:${port}${HOLDING}`, null, ['session.created']);
    other = await at[1].create(`https://127.0.0.1:${port}${PROMPT}`, null, ['reveal.completed']);
  }, 120_000);
  afterAll(async () => {
    await Promise.all([...(nodes ?? []), ...(workers ?? [])].map((service) => service.remove()));
    await sink?.close();
    allowed?.remove();
    await database?.drop();
  });

  /** Visits, captured alternately on both nodes. */
  const visits = (count: number) =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const headers = { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': `8.8.${n}.1` };
        const body = { tracker_id: tracker, token: randomUUID(), visit_id: randomUUID() };
        const service = nodes[n % 2 === 0 ? 0 : 1];
        expect((await service.call('POST', '/tracking/collect', { headers, body })).status).toBe(204);
      }),
    );
  /** All of its slots are taken, and all workers have polled since. */
  const full = async (): Promise<void> => {
    await eventually(
      'all slots are taken',
      () => held.size,
      (size) => size >= CONCURRENCY,
      ROOMY_MS,
    );
    const { delivery_id } = await at[0].sendTest(other);
    await at[1].becomes(
      'another endpoint has its event',
      other,
      delivery_id,
      ({ state }) => state === 'delivered',
    );
  };
  const counted = async ({ env: { OPS_PORT } }: Service, name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${OPS_PORT}/metrics`)).text();
    const samples = text.split('\n').filter((line) => line.startsWith(`doorplate_webhook_${name}`));
    return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  const starts = (worker: Service) => counted(worker, 'starts_total');
  const underWay = async (worker: Service): Promise<number> =>
    (await starts(worker)) - (await counted(worker, 'attempts_total'));
  const sessions = async (): Promise<string[]> =>
    (await nodes[1].call('GET', '/v1/sessions?limit=100', { key })).body.sessions.map(
      ({ session_id }: { session_id: string }) => `evt_session_${session_id}`,
    );
  const allTaken = async (): Promise<void> => {
    const expected = new Set(await sessions());
    await eventually(
      'all are received',
      () => new Set(taken),
      (ids) => ids.size >= expected.size,
      ROOMY_MS,
    );
    expect(new Set(taken)).toEqual(expected);
  };

  it('go from either node to an endpoint by both workers, within its limit of concurrent requests', {
    timeout: 90_000,
  }, async () => {
    await visits(EVENTS);
    for (let left = EVENTS; left > CONCURRENCY; left -= CONCURRENCY) {
      await full();
      expect(held.size).toBe(CONCURRENCY);
      release();
    }
    holds = false;
    release();
    await allTaken();
    expect(most).toBe(CONCURRENCY);
    expect(taken).toHaveLength(EVENTS);
    await eventually(
      'both workers have begun some',
      async () => {
        await at[0].sendTest(other);
        return Promise.all(workers.map(starts));
      },
      (begun) => begun.every((count) => count > 0),
      ROOMY_MS,
      100,
    );
    for (const request of sink.requests) {
      verified(request, (request.path === HOLDING ? hook : other).signing_secret);
    }
  });

  it('are not lost when a worker is killed', { timeout: 90_000 }, async () => {
    holds = true;
    await visits(EVENTS);
    await full();
    const killed = (await underWay(workers[0])) > 0 ? workers[0] : workers[1];
    await killed.kill();
    const [lost] = await eventually(
      'its requests are cut off',
      () => cut,
      (ids) => ids.length > 0,
    );
    holds = false;
    release();
    // Its claims expire in half a minute; this test does not wait for that.
    await administer(
      database.url,
      `update work.delivery_claim set lease_until = 'epoch' where holder in (
           select c.holder from work.delivery_claim c join read.webhook_delivery d using (delivery_id)
           where d.event_id = '${lost}')`,
    );
    await allTaken();
  });
});
