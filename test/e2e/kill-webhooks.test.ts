import { afterAll, beforeAll, expect, it } from 'vitest';
import { REVEAL_PREFIX } from '../../domain/reveals/events.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { describeOnStores } from '../support/stores.ts';
import {
  type AllowedReceivers,
  allowReceivers,
  type PartnerWebhooks,
  type TestWebhook,
  verified,
  webhooksOf,
} from '../support/webhook-sink.ts';
import { type Killable, nextIp, startKillable } from './killable.ts';
import { revealsIn } from './reveals-in-log.ts';
import { readLog } from './submissions.ts';
import { verifyCompleted, verifyRecord } from './verify-tracking.ts';
import { type Customer, follow, startVisitors } from './visitors.ts';

/** 10,000 by hand. */
const EVENTS = Number(process.env.DOORPLATE_KILL_EVENTS ?? 300);
const TEST_MS = 180_000 + EVENTS * 60;
const RECOVERED_MS = 40_000;
/** A killed process's claims of deliveries and enrichments end half a minute later. */
const DELIVERED_MS = 90_000;
const POLL_MS = 250;
const soon = (): number => EVENTS / 50 + Math.floor(Math.random() * 150);

interface WebhookCustomer extends Customer {
  readonly hook: TestWebhook;
  readonly webhooks: PartnerWebhooks;
  readonly bodies: Map<string, string>;
  readonly taken: Set<string>;
}

describeOnStores('kills under webhook load', ({ EVENTSTORE_URL: url }) => {
  let allowed: AllowedReceivers;
  let sink: Receiver;
  let killable: Killable;
  let customers: readonly WebhookCustomer[] = [];
  let fails = true;
  /** What no receiver may get. */
  const unexpected: string[] = [];
  let stopVisitors = async (): Promise<void> => {};

  beforeAll(async () => {
    const port = await freePort();
    allowed = await allowReceivers([port]);
    sink = await startReceiver({
      tls: allowed.tls,
      port,
      answer: (request, response) => {
        const customer = customers.find(({ partner_id }) => request.path === `/${partner_id}`);
        const n = sink.requests.length;
        if (fails && n % 11 === 0) response.destroy();
        else if ((fails && n % 5 === 0) || customer === undefined) response.writeHead(500).end();
        else {
          response.writeHead(204).end();
          customer.taken.add(String(request.headers['webhook-id']));
        }
        if (customer) note(customer, request);
      },
    });
    killable = await startKillable(url, { ...allowed.env, RETRY_BASE_SECONDS: '0.05' });
    const newCustomer = async (): Promise<WebhookCustomer> => {
      const customer = await killable.newCustomer();
      const webhooks = webhooksOf(killable.service, customer.key);
      const hook = await webhooks.create(`https://127.0.0.1:${port}/${customer.partner_id}`, null);
      return { ...customer, webhooks, hook, bodies: new Map(), taken: new Set() };
    };
    customers = [await newCustomer(), await newCustomer()];
  }, 90_000);
  afterAll(async () => {
    await stopVisitors();
    await killable?.close();
    await sink?.close();
    allowed?.remove();
  });

  /** The events that a customer must receive: one for every session and one for every requested reveal. */
  const happened = async (customer: WebhookCustomer): Promise<string[]> => {
    const { record: told, partner_id } = customer;
    await eventually(
      'the follower is at the end of the feed',
      () => follow(killable.service, customer),
      ({ status, body }) => status === 200 && !body.has_more && told.followed.length >= told.captured.size,
    );
    const reveals = revealsIn(await readLog(killable.store, [REVEAL_PREFIX]), partner_id);
    for (const { reveal_id } of told.reveals.values()) expect(reveals.has(reveal_id), reveal_id).toBe(true);
    return [
      ...told.followed.map((id) => `evt_session_${id}`),
      ...[...reveals.keys()].map((id) => `evt_reveal_${id}`),
    ];
  };

  /** Each is signed and has the same bytes each time. */
  const note = ({ hook, bodies }: WebhookCustomer, request: Received): void => {
    try {
      const { id } = verified(request, hook.signing_secret);
      const body = request.body.toString();
      if ((bodies.get(id) ?? body) !== body) unexpected.push(`${id}: ${bodies.get(id)} and ${body}`);
      bodies.set(id, body);
    } catch (error) {
      unexpected.push(String(error));
    }
  };

  const verifyNotifications = async (customer: WebhookCustomer): Promise<void> => {
    const { webhooks, hook, taken, bodies } = customer;
    const expected = new Set(await happened(customer));
    await eventually(
      'everything is received',
      () => [...expected].filter((id) => !taken.has(id)),
      (missing) => missing.length === 0,
      DELIVERED_MS,
      POLL_MS,
    );
    expect(unexpected).toEqual([]);
    expect(new Set(bodies.keys())).toEqual(expected);
    const delivered = { pending: 0, delivered: expected.size, failed: 0, cancelled: 0, expired: 0 };
    await eventually(
      'the history knows that everything is delivered',
      () => webhooks.totals(hook),
      ({ pending }) => pending === 0,
      DELIVERED_MS,
      POLL_MS,
    );
    expect(await webhooks.totals(hook)).toEqual(delivered);
    const history = await webhooks.history(hook);
    expect(new Set(history.map(({ id }) => id)).size).toBe(history.length);
    expect(history.map(({ event_id }) => event_id).toSorted()).toEqual([...expected].toSorted());
    for (const shown of history) {
      expect(shown).toMatchObject({
        state: 'delivered',
        http_status: 204,
        error: null,
        next_attempt_at: null,
      });
      expect(shown.attempts).toBeGreaterThan(0);
    }
    expect(history.some(({ attempts }) => attempts > 1)).toBe(true);
  };

  it(
    `lose no notification in ${EVENTS} events when server, PostgreSQL or both are killed`,
    async () => {
      const { service, store, kill } = killable;
      const requestsAfter = async (more: number): Promise<void> => {
        const enough = sink.requests.length + more;
        await eventually(`${more} more requests`, () => sink.requests.length > enough, Boolean, RECOVERED_MS);
      };
      stopVisitors = startVisitors(service, customers, nextIp);
      // Finally PostgreSQL: its recovery drops the claims, so no lease has to end first.
      const kills = [kill.server, kill.both, kill.postgres];
      do {
        for (const killOne of kills) {
          await requestsAfter(soon());
          await killOne();
        }
      } while (customers.reduce((sum, { taken }) => sum + taken.size, 0) < EVENTS);
      await requestsAfter(soon());
      await stopVisitors();
      fails = false;
      // Before any receipt is read: pending reveals complete without a request.
      await Promise.all(customers.map(verifyNotifications));
      await Promise.all(
        customers.map(async (customer) => {
          await verifyRecord(service, customer);
          await verifyCompleted(service, store, customer);
        }),
      );
    },
    TEST_MS,
  );
});
