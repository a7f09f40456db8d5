import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Service, startService } from '../support/service.ts';
import { describeOnStores } from '../support/stores.ts';
import { type PartnerWebhooks, type TestWebhook, webhooksOf } from '../support/webhook-sink.ts';

/** One less than opens the breaker, whose probes would take a minute. */
const EVENTS = 9;
/** Longer than the lease of an attempt that the kill interrupts. */
const ROOMY_MS = 60_000;

describeOnStores('a recovery', (env) => {
  let database: TestDatabase;
  let receiver: Receiver;
  let service: Service;
  let webhooks: PartnerWebhooks;
  let hook: TestWebhook;
  let mode: 'down' | 'holding' | 'up' = 'down';
  /** How often each event was taken. */
  const taken = new Map<string, number>();

  beforeAll(async () => {
    database = await testDatabase();
    receiver = await startReceiver({
      port: await freePort(),
      answer: ({ headers }, response) => {
        const id = String(headers['webhook-id']);
        if (mode === 'holding') return;
        if (mode === 'up') taken.set(id, (taken.get(id) ?? 0) + 1);
        response.writeHead(mode === 'up' ? 204 : 503).end();
      },
    });
    service = await startService({
      databaseUrl: database.url,
      env: {
        ...env,
        WEBHOOK_ALLOW_HTTP: '1',
        WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
        WEBHOOK_ALLOW_PORTS: String(receiver.port),
        // What the recovery does not make due stays for ten minutes at least.
        RETRY_BASE_SECONDS: '600',
        WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
      },
    });
    webhooks = webhooksOf(service, (await service.newKey({ requests_per_second: 100_000 })).api_key);
    hook = await webhooks.create(`http://127.0.0.1:${receiver.port}/`, null);
  }, 120_000);
  afterAll(async () => {
    await service?.remove();
    await receiver?.close();
    await database?.drop();
  });

  it('goes on after kill -9, and delivers what failed once', async () => {
    const sent = [];
    for (let n = 0; n < EVENTS; n += 1) {
      const { delivery_id, event_id } = await webhooks.sendTest(hook);
      sent.push(event_id);
      if (n < 9) await webhooks.becomes('it has failed', hook, delivery_id, ({ attempts }) => attempts === 1);
    }
    mode = 'holding';
    const since = new Date(Date.now() - 60_000).toISOString();
    const asked = await webhooks.ask('POST', `/${hook.id}/recover`, 202, { since });
    await service.kill();
    mode = 'up';
    await service.restart();
    const path = `/${hook.id}/recoveries/${asked.recovery_id}`;
    const done = await eventually(
      'everything is delivered',
      () => webhooks.ask('GET', path, 200),
      ({ delivered }) => delivered === asked.deliveries,
      ROOMY_MS,
    );
    expect(done).toMatchObject({ pending: 0, failed: 0 });
    await eventually(
      'the receiver has each event',
      async () => taken.size,
      (size) => size === EVENTS,
      ROOMY_MS,
    );
    expect([...taken]).toEqual(expect.arrayContaining(sent.map((id) => [id, 1])));
    expect(asked.deliveries).toBe(EVENTS);
  }, 120_000);
});
