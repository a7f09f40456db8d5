import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { type Deliverer, openDeliverer, type Receive, TAKEN, TIMED_OUT } from '../support/deliverer.ts';
import {
  aDelivery,
  anEndpoint,
  created,
  enabled,
  queued,
  removed,
  type TestDelivery,
  type TestEndpoint,
} from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let deliverer: Deliverer;
const workers: { stop(): Promise<void> }[] = [];
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([deliveries]);
  deliverer = openDeliverer(stack);
});
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop();
});
afterAll(() => stack.close());

const start = (...[receive, over]: Parameters<Deliverer['start']>) => {
  const worker = deliverer.start(receive, over);
  workers.push(worker);
  return worker;
};
const taken: Receive = () => TAKEN;
/** Accepts deliveries of endpoints that other tests left. */
const of =
  ({ webhook_id }: TestEndpoint, receive: Receive): Receive =>
  (eventId, webhookId) =>
    webhookId === webhook_id ? receive(eventId, webhookId) : TAKEN;
/** Waits until a worker has polled the endpoint after `since` (`performance.now()`) and found nothing to attempt. */
const pollsInVain = (endpoint: TestEndpoint, since: () => number) =>
  eventually(
    'a poll finds nothing to attempt',
    () => deliverer.polls(endpoint).at(-1),
    (last) => last !== undefined && last.sentAt > since() && last.claimed === 0,
  );
const until = (what: string, endpoint: TestEndpoint, wanted: Record<string, number>) =>
  eventually(
    what,
    () => deliverer.states(endpoint),
    (is) => JSON.stringify(is) === JSON.stringify(wanted),
    20_000,
  );

describe('the test of a rotation', () => {
  it('is signed by the newest secret alone, says so, and counts for no circuit breaker', async () => {
    const endpoint = anEndpoint();
    const signed: [eventId: string, secrets: string[]][] = [];
    start(
      of(endpoint, () => TIMED_OUT),
      {
        targetsOf: async (ids) =>
          new Map(ids.map((id) => [id, { url: id, secrets: [Buffer.from('new'), Buffer.from('old')] }])),
        sign: (secrets, eventId) => {
          signed.push([eventId, secrets.map(String)]);
          return { 'webhook-id': eventId };
        },
      },
    );
    const [test, usual] = [aDelivery(endpoint), aDelivery(endpoint)];
    const queuedTest = queued(test, deliverer.clock.now());
    await deliverer.append({ ...queuedTest, data: { ...queuedTest.data, newest_secret_only: true } });
    const attemptOf = (delivery: TestDelivery) =>
      eventually(
        'the attempt is recorded',
        () => deliverer.row(delivery),
        ({ attempts }) => attempts === 1,
      );
    expect(await attemptOf(test)).toMatchObject({ error: 'timeout', signed_by: 'newest' });
    const failures = () =>
      stack.rows(
        `select s.failures_in_row as slot, h.failures_in_row as health
         from work.webhook_slot s join read.webhook_health h using (webhook_id) where webhook_id = $1`,
        [endpoint.webhook_id],
      );
    await deliverer.append(queued(usual, deliverer.clock.now()));
    expect(await attemptOf(usual)).toMatchObject({ signed_by: 'newest_and_previous' });
    await eventually('the other failure is counted', failures, ([row]) => row?.slot === 1);
    expect(await failures()).toEqual([{ slot: 1, health: 1 }]);
    expect(signed).toEqual([
      [test.event_id, ['new']],
      [usual.event_id, ['new', 'old']],
    ]);
  });
});

describe('delivery workers', () => {
  it('make each delivery once, soon after it is queued', async () => {
    const endpoint = anEndpoint();
    const sent: string[] = [];
    const receive = of(endpoint, (eventId) => {
      sent.push(eventId);
      return TAKEN;
    });
    for (let n = 0; n < 3; n += 1) start(receive);
    const queued = await deliverer.queue(endpoint, 100);
    await until('all are delivered', endpoint, { delivered: 100 });
    expect(sent.toSorted()).toEqual(queued.map((d) => d.event_id).toSorted());
    const [first] = queued;
    expect(first && (await deliverer.row(first))).toMatchObject({
      attempts: 1,
      http_status: 200,
      error: null,
    });
  });

  it('keep at most 32 attempts at once per endpoint across two workers', async () => {
    const endpoint = anEndpoint();
    let now = 0;
    let most = 0;
    const receive: Receive = async () => {
      now += 1;
      most = Math.max(most, now);
      await setTimeout(15);
      now -= 1;
      return TAKEN;
    };
    await deliverer.queue(endpoint, 400);
    start(receive);
    start(receive);
    await until('all are delivered', endpoint, { delivered: 400 });
    expect(most).toBeLessThanOrEqual(32);
    expect(most).toBeGreaterThan(20);
  });

  it('never begin more often than 200 times in any second at one endpoint', async () => {
    const endpoint = anEndpoint();
    let sent = 0;
    const receive: Receive = () => {
      sent += 1;
      return TAKEN;
    };
    await deliverer.queue(endpoint, 500);
    start(receive, { startsPerSecond: 200 });
    start(receive, { startsPerSecond: 200 });
    await until('all are delivered', endpoint, { delivered: 500 });
    expect(sent).toBe(500);
    const starts = deliverer.polls(endpoint).flatMap(({ at, claimed }) => Array<number>(claimed).fill(at));
    const inSecondFrom = (from: number) => starts.filter((at) => at >= from && at < from + 1_000).length;
    expect(Math.max(...starts.map(inSecondFrom))).toBeLessThanOrEqual(200);
    expect(Math.max(...starts) - Math.min(...starts)).toBeLessThan(3_500);
  });

  it('deliver to other endpoints while one endpoint hangs', async () => {
    const [hanging, other] = [anEndpoint(), anEndpoint()];
    const release = Promise.withResolvers<void>();
    let waiting = 0;
    const receive: Receive = async (_event, webhookId) => {
      if (webhookId !== hanging.webhook_id) return TAKEN;
      waiting += 1;
      await release.promise;
      return TIMED_OUT;
    };
    start(receive);
    await deliverer.queue(hanging, 100);
    await eventually('the endpoint hangs', () => waiting === 32);
    await deliverer.queue(other, 50);
    await until('the others are delivered', other, { delivered: 50 });
    expect(waiting).toBe(32);
    release.resolve();
    await until('its failures are recorded', hanging, { pending: 100 });
  });

  it('deliver the others of a claim while the body of one is not answered', async () => {
    const [slow, quick] = [anEndpoint(), anEndpoint()];
    const now = deliverer.clock.now();
    const [unanswered, other] = [aDelivery(slow), aDelivery(quick)];
    await deliverer.append(queued(unanswered, now), queued(other, now));
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    start(taken, {
      bodyOf: async (eventId) => {
        if (eventId === unanswered.event_id) await answered;
        return Buffer.from(eventId);
      },
    });
    await until('the other is delivered', quick, { delivered: 1 });
    expect(await deliverer.states(slow)).toEqual({ pending: 1 });
    answer();
    await until('its body is answered', slow, { delivered: 1 });
  });

  it('do not send from memory a body that has gone before its claim', async () => {
    const endpoint = anEndpoint();
    const [gone, kept] = await deliverer.queue(endpoint, 2);
    await stack.rows('delete from read.webhook_payload where event_id = $1', [gone?.event_id]);
    const sent: string[] = [];
    const receive = of(endpoint, (eventId) => {
      sent.push(eventId);
      return TAKEN;
    });
    start(receive);
    await until('the other is delivered', endpoint, { delivered: 1, pending: 1 });
    await pollsInVain(endpoint, () => 0);
    expect(sent).toEqual([kept?.event_id]);
  });

  it('read the body anew where it may have gone while its endpoint was read', async () => {
    const endpoint = anEndpoint();
    const [delivery] = await deliverer.queue(endpoint, 1);
    const manners: string[] = [];
    const sent: string[] = [];
    const receive = of(endpoint, (eventId) => {
      sent.push(eventId);
      return TAKEN;
    });
    start(receive, {
      targetsOf: async (ids) => {
        if (ids.includes(endpoint.webhook_id)) await setTimeout(600);
        return new Map(ids.map((id) => [id, { url: id, secrets: [Buffer.from('s')] }]));
      },
      bodyOf: async (eventId, manner) => {
        if (eventId !== delivery?.event_id) return Buffer.from(eventId);
        manners.push(manner);
        return manner === 'stored' ? null : Buffer.from(eventId);
      },
    });
    await eventually('its body is read', () => manners.includes('stored'));
    await pollsInVain(endpoint, () => 0);
    expect(sent).toEqual([]);
  });
});

describe('a failing delivery', () => {
  it('is attempted again after its delay, not before, and fails after twelve attempts', async () => {
    const endpoint = anEndpoint();
    let sent = 0;
    start(
      of(endpoint, () => {
        sent += 1;
        return { http_status: 500, error: 'http_status', retry_after_ms: null };
      }),
      { retryBaseMs: 20_000 },
    );
    const [d] = await deliverer.queue(endpoint, 1);
    if (!d) throw new Error('nothing was queued');
    for (let attempt = 1; attempt < 12; attempt += 1) {
      const row = await eventually(
        `attempt ${attempt}`,
        () => deliverer.row(d),
        (is) => is.attempts === attempt,
      );
      expect(row).toMatchObject({ state: 'pending', http_status: 500, error: 'http_status' });
      const delay = Number(row.next_attempt_at) - deliverer.clock.now();
      expect(delay).toBeGreaterThan(attempt === 1 ? 15_000 : 60_000);
      expect(sent).toBe(attempt);
      deliverer.clock.skip(delay + 1_000);
    }
    const last = await eventually(
      'it has failed',
      () => deliverer.row(d),
      (is) => is.state === 'failed',
    );
    expect(last).toMatchObject({ attempts: 12, next_attempt_at: null });
  });

  it('has seven days, not counting the time in which its endpoint is paused', async () => {
    const [paused, going] = [anEndpoint(), anEndpoint()];
    await deliverer.append(created(paused, deliverer.clock.now()), created(going, deliverer.clock.now()));
    await deliverer.append(enabled(paused, false, deliverer.clock.now()));
    await deliverer.queue(paused, 1);
    await deliverer.queue(going, 1);
    deliverer.clock.skip(8 * DAY);
    await deliverer.append(enabled(paused, true, deliverer.clock.now()));
    start(() => TIMED_OUT);
    await until('the one has failed', going, { failed: 1 });
    const [row] = await eventually(
      'the other was attempted',
      () => stack.rows('select * from read.webhook_delivery where webhook_id = $1', [paused.webhook_id]),
      ([is]) => is?.attempts === 1,
    );
    expect(row).toMatchObject({ state: 'pending' });
  });
});

describe('an endpoint', () => {
  it('receives nothing while it is paused, everything once it is enabled, and nothing after its deletion', async () => {
    const [paused, gone, control] = [anEndpoint(), anEndpoint(), anEndpoint()];
    const sent: string[] = [];
    start((_event, webhookId) => {
      sent.push(webhookId);
      return TAKEN;
    });
    await deliverer.append(
      enabled(paused, false, deliverer.clock.now()),
      removed(gone, deliverer.clock.now()),
    );
    await deliverer.queue(paused, 5);
    await deliverer.queue(gone, 5);
    await deliverer.queue(control, 1);
    await until('the control is delivered', control, { delivered: 1 });
    expect(sent).toEqual([control.webhook_id]);
    await deliverer.append(enabled(paused, true, deliverer.clock.now()));
    await until('all are delivered', paused, { delivered: 5 });
    expect(sent).not.toContain(gone.webhook_id);
    expect(await deliverer.states(gone)).toEqual({ pending: 5 });
  });

  it('receives one probe at a time after ten failures, also after a restart, until a probe succeeds', async () => {
    const endpoint = anEndpoint();
    let well = false;
    let now = 0;
    let most = 0;
    let sent = 0;
    let endedAt = 0;
    const receive = of(endpoint, async () => {
      sent += 1;
      now += 1;
      most = Math.max(most, now);
      await setTimeout(5);
      now -= 1;
      endedAt = performance.now();
      return well ? TAKEN : TIMED_OUT;
    });
    const options = { retryBaseMs: 5_000, concurrency: 8 };
    const first = start(receive, options);
    await deliverer.queue(endpoint, 200);
    const broken = await eventually(
      'its breaker is open',
      () => stack.rows('select * from read.webhook_health where webhook_id = $1', [endpoint.webhook_id]),
      ([row]) => Number(row?.failures_in_row) >= 10,
    );
    expect(broken).toMatchObject([{ pending: '200' }]);
    const attemptsEnd = () => (now > 0 ? Number.POSITIVE_INFINITY : endedAt);
    await pollsInVain(endpoint, attemptsEnd);
    expect(sent).toBeLessThan(10 + 2 * 8);
    most = 0;
    const probe = async (): Promise<void> => {
      const before = sent;
      deliverer.clock.skip(20_000);
      await eventually('a probe', () => sent > before);
      await pollsInVain(endpoint, attemptsEnd);
      expect(sent).toBe(before + 1);
    };
    await probe();
    await probe();
    workers.splice(0);
    await first.stop();
    await stack.caughtUp([deliveries]);
    // As after a crash of PostgreSQL.
    await stack.rows('truncate work.webhook_slot, work.delivery_claim');
    const before = sent;
    const restartedAt = performance.now();
    start(receive, options);
    await pollsInVain(endpoint, () => restartedAt);
    expect(sent).toBe(before);
    await probe();
    expect(most).toBe(1);
    well = true;
    deliverer.clock.skip(20_000);
    await eventually(
      'the endpoint receives all deliveries again',
      () => deliverer.states(endpoint),
      (is) => Number(is.delivered) > 150,
    );
  });
});

/** A pool that rejects every renewal of claims. */
const withoutRenewals = (pool: pg.Pool): pg.Pool => {
  const query = async (config: pg.QueryConfig) => {
    if (config.name === 'renew_deliveries') throw new Error('the database is away');
    return pool.query(config);
  };
  return Object.assign(Object.create(pool), { query });
};

describe('a worker that loses its claim or stops', () => {
  it('loses no delivery, and its late timeout does not undo a success', async () => {
    const endpoint = anEndpoint();
    const release = Promise.withResolvers<void>();
    let began = false;
    start(
      of(endpoint, async () => {
        began = true;
        await release.promise;
        return TIMED_OUT;
      }),
      // It neither keeps its claim nor, with its only slot in use, claims the delivery again.
      { pool: withoutRenewals(stack.pool), concurrency: 1 },
    );
    const [d] = await deliverer.queue(endpoint, 1);
    if (!d) throw new Error('nothing was queued');
    await eventually('it began', () => began);
    deliverer.clock.skip(60_000);
    start(taken);
    await until('another one delivered it', endpoint, { delivered: 1 });
    release.resolve();
    await eventually(
      'the log holds the timeout too',
      async () => {
        const stream = `deliveries-${endpoint.webhook_id}-${isoTime(deliverer.clock.now()).slice(0, 10)}`;
        const events = await Array.fromAsync(stack.store.readStream(stream));
        return events.filter(({ type }) => type === 'webhooks.DeliveryAttempted.v1').length;
      },
      (n) => n === 2,
    );
    await stack.caughtUp([deliveries]);
    expect(await deliverer.row(d)).toMatchObject({ state: 'delivered', attempts: 1, error: null });
  });

  it('leaves the attempt to another worker when it stops while the receiver hangs', async () => {
    const endpoint = anEndpoint();
    const release = Promise.withResolvers<void>();
    let began = false;
    const first = deliverer.start(
      of(endpoint, async () => {
        began = true;
        await release.promise;
        return TIMED_OUT;
      }),
    );
    await deliverer.queue(endpoint, 1);
    await eventually('it began', () => began);
    const stopping = performance.now();
    await first.stop();
    expect(performance.now() - stopping).toBeLessThan(8_000);
    release.resolve();
    deliverer.clock.skip(40_000);
    start(taken);
    await until('another one delivered it', endpoint, { delivered: 1 });
  }, 20_000);
});
