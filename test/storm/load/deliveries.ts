/** A receiver of the partners' webhooks that fails at random and verifies every signature. */
import type { ServerResponse } from 'node:http';
import type { Received } from '../../support/receiver.ts';
import { verified } from '../../support/webhook-sink.ts';
import type { Partner } from '../partners.ts';
import type { Load } from './load.ts';

export interface FailureShares {
  readonly refused: number;
  readonly cut: number;
}

/** Creates the receiver; `failing` decides each delivery. */
export const createReceiver =
  (load: Load, failing: () => FailureShares) =>
  (request: Received, response: ServerResponse): void => {
    const partner = load.partners.find(({ partnerId }) => request.path === `/${partnerId}`);
    if (partner === undefined) {
      load.violations.add('a delivery goes to its endpoint', `${request.path}`);
      response.writeHead(404).end();
      return;
    }
    const eventId = note(load, partner, request);
    const { refused, cut } = failing();
    const chance = load.random.next();
    if (chance < refused) response.writeHead(500).end();
    else if (chance < refused + cut) response.destroy();
    else {
      response.writeHead(204).end();
      if (eventId !== null) partner.receivedEvents.add(eventId);
    }
  };

/** @returns the event's id; null: it breaks the contract */
const note = (load: Load, partner: Partner, request: Received): string | null => {
  const described = `partner ${partner.partnerId}, event ${request.headers['webhook-id']}`;
  const body = request.body.toString();
  try {
    const { id, type, data } = verified(request, partner.webhook.signing_secret);
    const first = partner.events.get(id);
    if (first === undefined) partner.events.set(id, body);
    else if (first !== body) {
      load.violations.add('an event has the same body in every delivery', `${described}: ${first} / ${body}`);
    }
    if (first === undefined && type === 'session.created') observeDelivery(load, partner, data);
    return id;
  } catch (error) {
    load.violations.add('a delivery has the right signature', `${described}: ${error}: ${body}`);
    return null;
  }
};

const observeDelivery = (
  { client }: Load,
  { tabs }: Partner,
  { custom }: Readonly<Record<string, unknown>>,
): void => {
  const acknowledgedAt = tabs.get((custom as { tab: string }).tab)?.acknowledgedAt ?? null;
  if (acknowledgedAt === null) return;
  const endedAt = performance.now();
  client.observe({ kind: 'webhook delivery', sentAt: acknowledgedAt, endedAt, outcome: 'success' });
};
