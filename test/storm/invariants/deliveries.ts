import type { Load } from '../load/load.ts';
import type { Partner } from '../partners.ts';
import { settle } from './settle.ts';

const DELIVERED_MS = 120_000;

/** Every session and every completed reveal was delivered at least once, and nothing else was. */
export const checkDeliveries = async (load: Load, partner: Partner): Promise<void> => {
  const { partnerId, feed, reveals, receivedEvents, events } = partner;
  const expected = new Set([
    ...feed.map((id) => `evt_session_${id}`),
    ...[...reveals.values()].map(({ revealId }) => `evt_reveal_${revealId}`),
  ]);
  const missing = await settle(
    async () => [...expected].filter((id) => !receivedEvents.has(id)),
    DELIVERED_MS,
  );
  for (const id of missing) {
    load.violations.add(
      'every event is delivered',
      `partner ${partnerId}, ${id}, attempts ${events.has(id)}`,
    );
  }
  for (const id of events.keys()) {
    if (expected.has(id)) continue;
    load.violations.add('only what happened is delivered', `partner ${partnerId}, ${id}`);
  }
};
