/** Customers of a killed product with an endpoint each, and a receiver that fails often. */
import { expect } from 'vitest';
import { REVEAL_PREFIX } from '../../domain/reveals/events.ts';
import type { Environment } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Received, startReceiver } from '../support/receiver.ts';
import {
  allowReceivers,
  type PartnerWebhooks,
  type TestWebhook,
  verified,
  webhooksOf,
} from '../support/webhook-sink.ts';
import type { Killable } from './killable.ts';
import { revealsIn } from './reveals-in-log.ts';
import { readLog } from './submissions.ts';
import { type Customer, follow } from './visitors.ts';

/** A killed process's claims of deliveries and enrichments end half a minute later. */
const DELIVERED_MS = 90_000;
const POLL_MS = 250;

export interface WebhookCustomer extends Customer {
  readonly hook: TestWebhook;
  readonly webhooks: PartnerWebhooks;
  /** The body of each event that the receiver got. */
  readonly bodies: Map<string, string>;
  /** The ids of the events that the receiver accepted. */
  readonly taken: Set<string>;
}

export interface FlakyReceiver {
  /** The configuration of the product that delivers to it. */
  readonly env: Environment;
  readonly requests: readonly Received[];
  /** Requests that no receiver may get. */
  readonly unexpected: readonly string[];
  newCustomer(killable: Killable): Promise<WebhookCustomer>;
  /** Accepts every request from now on. */
  heal(): void;
  close(): Promise<void>;
}

/** Starts a receiver that drops or refuses a quarter of the requests until it is healed. */
export const startFlakyReceiver = async (): Promise<FlakyReceiver> => {
  const port = await freePort();
  const allowed = await allowReceivers([port]);
  const customers: WebhookCustomer[] = [];
  const unexpected: string[] = [];
  let fails = true;
  const sink = await startReceiver({
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

  return {
    env: allowed.env,
    requests: sink.requests,
    unexpected,
    newCustomer: async (killable) => {
      const customer = await killable.newCustomer();
      const webhooks = webhooksOf(killable.service, customer.key);
      const hook = await webhooks.create(`https://127.0.0.1:${port}/${customer.partner_id}`, null);
      const created = { ...customer, webhooks, hook, bodies: new Map(), taken: new Set<string>() };
      customers.push(created);
      return created;
    },
    heal: () => {
      fails = false;
    },
    close: async () => {
      await sink.close();
      allowed.remove();
    },
  };
};

/** The events that a customer must receive: one for every session and one for every requested reveal. */
const expectedEvents = async (killable: Killable, customer: WebhookCustomer): Promise<Set<string>> => {
  const { record, partner_id } = customer;
  await eventually(
    'the follower is at the end of the feed',
    () => follow(killable.service, customer),
    ({ status, body }) => status === 200 && !body.has_more && record.followed.length >= record.captured.size,
  );
  const reveals = revealsIn(await readLog(killable.store, [REVEAL_PREFIX]), partner_id);
  for (const { reveal_id } of record.reveals.values()) expect(reveals.has(reveal_id), reveal_id).toBe(true);
  return new Set([
    ...record.followed.map((id) => `evt_session_${id}`),
    ...[...reveals.keys()].map((id) => `evt_reveal_${id}`),
  ]);
};

/** The receiver got every event, and the history shows each delivery once. */
export const verifyNotifications = async (killable: Killable, customer: WebhookCustomer): Promise<void> => {
  const { webhooks, hook, taken, bodies } = customer;
  const expected = await expectedEvents(killable, customer);
  await eventually(
    'everything is received',
    () => [...expected].filter((id) => !taken.has(id)),
    (missing) => missing.length === 0,
    DELIVERED_MS,
    POLL_MS,
  );
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
    expect(shown).toMatchObject({ state: 'delivered', http_status: 204, error: null, next_attempt_at: null });
    expect(shown.attempts).toBeGreaterThan(0);
  }
  expect(history.some(({ attempts }) => attempts > 1)).toBe(true);
};
