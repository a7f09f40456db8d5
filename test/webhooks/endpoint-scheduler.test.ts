import { describe, expect, it } from 'vitest';
import type { DeliveryClaim } from '../../processors/webhooks/delivery/claims.ts';
import { EndpointScheduler } from '../../processors/webhooks/delivery/deliver.ts';

const LIMITS = { ofEndpoint: 32, ofPartner: 160, ofProcess: 2_048 };
const NOW = 1_000_000;
const NEVER = Number.POSITIVE_INFINITY;

const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

/** Endpoints that always have due deliveries and end their attempts only on request. */
const scene = (partnerOf: (webhookId: string) => string = (id) => id) => {
  const scheduler = new EndpointScheduler(LIMITS);
  const schedule = (webhookId: string, at: number) => scheduler.schedule(webhookId, partnerOf(webhookId), at);
  const running = new Map<string, number>();
  const serve = (): void => {
    for (let wanted = scheduler.plan(NOW); wanted.length > 0; wanted = scheduler.plan(NOW)) {
      for (const { webhookId, count } of wanted) {
        running.set(webhookId, (running.get(webhookId) ?? 0) + count);
        const claims = Array<DeliveryClaim>(count).fill({} as DeliveryClaim);
        scheduler.onClaimed({ webhookId, claims, againAt: NOW });
      }
    }
  };
  return { scheduler, schedule, running, serve };
};

describe('the attempts of a worker', () => {
  it.each([
    ['an endpoint', 1, 'one partner', 32],
    ['a partner', 900, 'one partner', 160],
    ['the process', 900, 'many partners', 2_048],
  ])('are at most those of %s at a time', (_, endpoints, partners, most) => {
    const { schedule, running, serve } = scene((id) => (partners === 'one partner' ? partners : id));
    for (const name of names(endpoints, 'e')) schedule(name, NOW);
    serve();
    expect([...running.values()].reduce((sum, count) => sum + count, 0)).toBe(most);
  });

  it('are free again when attempts end', () => {
    const { scheduler, schedule, running, serve } = scene();
    schedule('a', NOW);
    serve();
    expect(scheduler.nextIn(NOW)).toBe(NEVER);
    scheduler.onEnded('a');
    expect(scheduler.nextIn(NOW)).toBe(0);
    serve();
    expect(running.get('a')).toBe(33);
    expect(scheduler.nextIn(NOW)).toBe(NEVER);
  });
});

describe('an endpoint', () => {
  it('is polled when a delivery is due, and not before', () => {
    const { scheduler, schedule } = scene();
    schedule('a', NOW + 50);
    schedule('a', NOW + 500);
    expect(scheduler.plan(NOW)).toEqual([]);
    expect(scheduler.nextIn(NOW)).toBe(50);
    expect(scheduler.plan(NOW + 50)).toEqual([{ webhookId: 'a', count: 32 }]);
    scheduler.onClaimed({ webhookId: 'a', claims: [], againAt: NEVER });
    expect(scheduler.nextIn(NOW)).toBe(NEVER);
  });

  it('is polled again when a notification arrives during a poll', () => {
    const { scheduler, schedule } = scene();
    schedule('a', NOW);
    scheduler.plan(NOW);
    schedule('a', NOW);
    scheduler.onClaimed({ webhookId: 'a', claims: [], againAt: NEVER });
    expect(scheduler.nextIn(NOW)).toBe(0);
  });
});
