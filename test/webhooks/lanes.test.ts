import { describe, expect, it } from 'vitest';
import type { DeliveryClaim } from '../../processors/webhooks/claims.ts';
import { Lanes } from '../../processors/webhooks/lanes.ts';

const CONCURRENCY = 32;
const CAPACITY = 2_048;
const NOW = 1_000_000;
const NEVER = Number.POSITIVE_INFINITY;

const claimsOf = (webhook_id: string, count: number): DeliveryClaim[] =>
  Array.from({ length: count }, () => ({
    webhook_id,
    partner_id: 'p',
    delivery_id: 'd',
    event_id: 'e',
    created_at: '',
    cycle: 1,
    attempt: 1,
    ran_ms: 0,
    ahead: false,
  }));

/** Endpoints that always have due deliveries and end their attempts only on request. */
const scene = (
  partnerOf: (webhookId: string) => string = (id) => id,
  roomOfPartner?: (partnerId: string) => number,
) => {
  const lanes = new Lanes(CONCURRENCY, CAPACITY, roomOfPartner);
  const schedule = (webhookId: string, at: number) => lanes.schedule(webhookId, partnerOf(webhookId), at);
  const running = new Map<string, number>();
  const serve = (): void => {
    for (let more = true; more; ) {
      const wanted = lanes.plan(NOW);
      more = wanted.length > 0;
      for (const { webhookId, count } of wanted) {
        running.set(webhookId, (running.get(webhookId) ?? 0) + count);
        lanes.onClaimed({ webhookId, claims: claimsOf(webhookId, count), againAt: NOW });
      }
    }
  };
  return { lanes, schedule, running, serve };
};
const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

describe('the attempts of a worker', () => {
  it('are limited per partner by the given limit', () => {
    const rooms: Record<string, number> = { none: 0, one: 1 };
    const partnerOf = (webhookId: string) => webhookId.replace(/\d$/, '');
    const { schedule, running, serve } = scene(partnerOf, (id) => rooms[id] ?? Number.POSITIVE_INFINITY);
    for (const name of ['none1', 'one1', 'one2', 'usual1']) schedule(name, NOW);
    serve();
    expect(Object.fromEntries(running)).toEqual({ one1: 1, usual1: CONCURRENCY });
    rooms.none = 1;
    serve();
    expect(running.get('none1')).toBe(1);
  });

  it('let each of twenty busy endpoints reach its own limit', () => {
    const { schedule, running, serve } = scene();
    for (const name of names(20, 'e')) schedule(name, NOW);
    serve();
    expect([...running.values()]).toEqual(Array(20).fill(CONCURRENCY));
  });

  it('are not used up by hundreds of endpoints that hang: the next endpoint still gets some', () => {
    for (const count of [1, 30, 100, 200, 350]) {
      const { schedule, running, serve } = scene();
      for (const name of names(count, 'hanging')) schedule(name, NOW);
      serve();
      schedule('next', NOW);
      serve();
      expect(running.get('next') ?? 0, `beside ${count}`).toBeGreaterThan(0);
    }
  });

  it('are not used up by one partner with very many endpoints', () => {
    const { schedule, running, serve } = scene((id) => (id.startsWith('greedy') ? 'greedy' : id));
    for (const name of names(900, 'greedy')) schedule(name, NOW);
    serve();
    for (const name of names(5, 'e')) schedule(name, NOW);
    serve();
    for (const name of names(5, 'e')) expect(running.get(name) ?? 0).toBe(CONCURRENCY);
  });

  it('are free again when attempts end', () => {
    const { lanes, schedule, running, serve } = scene();
    schedule('a', NOW);
    serve();
    expect(lanes.nextIn(NOW)).toBe(NEVER);
    lanes.ended('a');
    expect(lanes.nextIn(NOW)).toBe(0);
    serve();
    expect(running.get('a')).toBe(CONCURRENCY + 1);
    expect(lanes.nextIn(NOW)).toBe(NEVER);
  });
});

describe('an endpoint', () => {
  it('is polled when a delivery is due, and not before', () => {
    const { lanes, schedule } = scene();
    schedule('a', NOW + 50);
    schedule('a', NOW + 500);
    expect(lanes.plan(NOW)).toEqual([]);
    expect(lanes.nextIn(NOW)).toBe(50);
    expect(lanes.plan(NOW + 50)).toEqual([{ webhookId: 'a', count: CONCURRENCY }]);
    lanes.onClaimed({ webhookId: 'a', claims: [], againAt: NEVER });
    expect(lanes.nextIn(NOW)).toBe(NEVER);
  });

  it('is polled again when a notification arrives during a poll', () => {
    const { lanes, schedule } = scene();
    schedule('a', NOW);
    lanes.plan(NOW);
    schedule('a', NOW);
    lanes.onClaimed({ webhookId: 'a', claims: [], againAt: NEVER });
    expect(lanes.nextIn(NOW)).toBe(0);
  });

  it('is polled after the endpoints that have not been served yet', () => {
    const { lanes, schedule } = scene();
    const all = names(100, 'e');
    for (const name of all) schedule(name, NOW);
    const first = lanes.plan(NOW).map(({ webhookId }) => webhookId);
    for (const webhookId of first) lanes.onClaimed({ webhookId, claims: [], againAt: NOW });
    const second = lanes.plan(NOW).map(({ webhookId }) => webhookId);
    expect(new Set([...first, ...second]).size).toBeGreaterThan(first.length);
    expect(second[0]).toBe(all.find((name) => !first.includes(name)));
  });

  it('divides what may start among the endpoints, however many attempts their partner already has', () => {
    const lanes = new Lanes(CONCURRENCY, CAPACITY);
    for (const id of ['a', 'b', 'c', 'd', 'e']) lanes.schedule(id, 'p', NOW);
    for (const webhookId of ['a', 'b', 'c', 'd', 'e'])
      lanes.onClaimed({ webhookId, claims: claimsOf(webhookId, 2), againAt: NOW });
    const plan = (most: number) =>
      lanes.plan(NOW, most).map(({ webhookId, count }) => `${webhookId} ${count}`);
    expect(plan(3)).toEqual(['a 1', 'b 1', 'c 1']);
    expect(lanes.nextIn(NOW)).toBe(0);
    expect(plan(0)).toEqual([]);
    expect(plan(10)).toEqual(['d 5', 'e 5']);
  });

  it('divides it among the endpoints that are due, not those that wait', () => {
    const lanes = new Lanes(CONCURRENCY, CAPACITY);
    for (let n = 0; n < 300; n += 1) lanes.schedule(`waiting ${n}`, `of ${n}`, NOW + 60_000);
    lanes.schedule('due', 'p', NOW);
    expect(lanes.plan(NOW, 10)).toEqual([{ webhookId: 'due', count: 10 }]);
  });
});
