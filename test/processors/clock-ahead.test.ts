/** Checks what a clock that was ahead by an hour or a year recorded, after its correction, on real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { createIntakeBatcher, type LookupStreams } from '../../commands/lookup/enrichment-streams.ts';
import { submitLookup } from '../../commands/lookup/submit-lookup.ts';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { intakeEvents } from '../../domain/lookup/events.ts';
import { intakeDecider, intakeStream, snapshotIntake } from '../../domain/lookup/intake.ts';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { type FutureTimeMark, reportFutureTimes } from '../../platform/clock/clock.ts';
import { startDomainChecks } from '../../processors/domains/check-domains.ts';
import { startEnrichmentAttempts } from '../../processors/lookup/attempt-enrichments.ts';
import { resubmitOrphaned, truncateIntakes } from '../../processors/lookup/settle-reservations.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { openDeliverer, type Receive, TAKEN, TIMED_OUT } from '../support/deliverer.ts';
import { anEndpoint } from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
let running: { stop(): Promise<void> }[];
let reported: FutureTimeMark[];
let endWatch: () => void;
beforeEach(async () => {
  stack = await startTestStack();
  running = [];
  reported = [];
  endWatch = reportFutureTimes(stack.log, (mark) => reported.push(mark));
});
afterEach(async () => {
  endWatch();
  for (const one of running) await one.stop();
  await stack.close();
});

describe.each([
  ['an hour', HOUR],
  ['a year', 365 * DAY],
])('after the correction of a clock that was ahead by %s', (_by, ahead) => {
  describe('enrichment', () => {
    let streams: LookupStreams;
    let asked: number;
    beforeEach(() => {
      streams = {
        store: stack.store,
        digest: (ip) => `digest-of-${ip}`,
        intake: createIntakeBatcher(stack.store),
      };
      asked = 0;
      stack.project([lookups]);
    });
    const submit = (over = streams) =>
      submitLookup(
        {
          ...over,
          capacity: { admit: async () => ({ ok: true, finished: () => undefined }) },
          configured: () => [],
          settlementsCaughtUp: async () => undefined,
        },
        { ip: '8.8.8.8', partnerId: randomUUID(), keyId: 'key_a', dailyAllowance: null, pendingLimit: 9 },
        stack.context(),
      );
    const attempts = (lookup: () => Promise<null>) => {
      const worker = startEnrichmentAttempts({
        ...streams,
        pool: stack.pool,
        clock: stack.clock,
        log: stack.log,
        chain: [{ name: 'test', lookup }],
        attemptMs: 5_000,
        retryBaseMs: 15_000,
        random: () => 0.5,
      });
      running.push(worker);
      return worker;
    };
    const failing = async () => {
      asked += 1;
      throw new Error('timed out');
    };

    it('attempts work on time that was requested, failed or claimed under that clock', async () => {
      const right = stack.clock.now();
      stack.clock.advance(ahead);
      await submit();
      await stack.caughtUp([lookups]);
      const worker = attempts(failing);
      await until(
        'the first attempt has failed',
        async () => (await stack.rows('select from read.enrichment_work where attempts = 1')).length === 1,
      );
      await worker.stop();
      await stack.rows(
        `insert into work.claim (item, cycle, attempt, lease_until) values ('8.8.8.8', 1, 2, $1)
         on conflict (item, cycle, attempt) do update set lease_until = excluded.lease_until`,
        [new Date(stack.clock.now() + 20_000)],
      );
      stack.clock.set(right);
      attempts(failing);
      await until('the second attempt is made', () => asked === 2);
      await until(
        'its failure is recorded by the right clock',
        async () => (await stack.rows('select from read.enrichment_work where attempts = 2')).length === 1,
      );
      const [row] = await stack.rows('select next_attempt_at from read.enrichment_work');
      expect(row?.next_attempt_at).toEqual(new Date(right + 30_000));
      expect(reported).toEqual(['enrichment']);
    });

    it('submits the reservation', async () => {
      const right = stack.clock.now();
      stack.clock.advance(ahead);
      await submit({
        ...streams,
        store: {
          ...stack.store,
          append: (stream, expected, events) =>
            stream.startsWith('enrichment-')
              ? Promise.reject(new OutcomeUnknown('no answer'))
              : stack.store.append(stream, expected, events),
        },
      });
      stack.clock.set(right);
      await stack.caughtUp([lookups]);
      expect(await resubmitOrphaned({ ...streams, ...stack, configured: () => [] })).toBe(1);
      expect(reported).toContain('reservation');
    });

    it('truncates intakes 90 days later', async () => {
      const partner = randomUUID();
      await stack.rows('insert into read.partner (partner_id, name, created_at) values ($1, $2, $3)', [
        partner,
        'Anna',
        new Date(),
      ]);
      const append = (at: number) => {
        const events = toNewEvents(intakeEvents, [snapshotIntake(intakeDecider.initial)], {
          ...stack.context(),
          at,
        });
        return stack.store.append(intakeStream(partner), 'any', events);
      };
      await append(stack.clock.now() + ahead);
      await append(stack.clock.now());
      stack.clock.advance(91 * DAY);
      await append(stack.clock.now());
      await truncateIntakes(stack);
      const left = await Array.fromAsync(stack.store.readStream(intakeStream(partner)));
      expect(left.map(({ revision }) => revision)).toEqual([1, 2]);
    });
  });

  describe('deliveries', () => {
    const prepare = () => {
      stack.project([deliveries]);
      return openDeliverer(stack);
    };

    it('attempts a delivery on time that was queued or failed under that clock', async () => {
      const deliverer = prepare();
      const endpoint = anEndpoint();
      deliverer.clock.skip(ahead);
      await deliverer.queue(endpoint, 3);
      let receive: Receive = () => TIMED_OUT;
      const worker = deliverer.start((...sent) => receive(...sent), { startsPerSecond: 200 });
      await until(
        'three attempts have failed',
        async () => (await stack.rows('select from read.webhook_delivery where attempts = 1')).length === 3,
      );
      await worker.stop();
      await deliverer.queue(endpoint, 2);
      deliverer.clock.skip(-ahead);
      receive = () => TAKEN;
      running.push(deliverer.start((...sent) => receive(...sent), { startsPerSecond: 200 }));
      await until('all are delivered', async () => (await deliverer.states(endpoint)).delivered === 5, 8_000);
      expect(reported).toContain('delivery');
    });

    it('probes an endpoint on time whose breaker opened under that clock', async () => {
      const deliverer = prepare();
      const endpoint = anEndpoint();
      deliverer.clock.skip(ahead);
      await deliverer.queue(endpoint, 20);
      let receive: Receive = () => TIMED_OUT;
      const worker = deliverer.start((...sent) => receive(...sent), { concurrency: 4 });
      await until(
        'its breaker is open',
        async () =>
          (await stack.rows('select from read.webhook_health where failures_in_row >= 10')).length === 1,
      );
      await worker.stop();
      await stack.caughtUp([deliveries]);
      deliverer.clock.skip(-ahead);
      receive = () => TAKEN;
      running.push(deliverer.start((...sent) => receive(...sent)));
      await until(
        'all are delivered',
        async () => (await deliverer.states(endpoint)).delivered === 20,
        8_000,
      );
    });
  });

  it('checks on time where a custom domain points', async () => {
    const right = stack.clock.now();
    await stack.rows(
      `insert into work.domain_look (domain_id, hostname, looks, looked_at, due_at, recorded_at)
       values ($1, 'visits.example.com', 1, $2, $3, $2)`,
      [randomUUID(), new Date(right + ahead), new Date(right + ahead + 5_000)],
    );
    let checks = 0;
    const looks = startDomainChecks({
      ...stack,
      serviceHost: 'service.example.com',
      newResolver: async () => {
        const refuse = async () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }));
        return {
          resolveCname: refuse,
          resolveTxt: refuse,
          resolve4: refuse,
          resolve6: refuse,
          cancel: () => undefined,
        };
      },
      tokenOf: () => 'token',
      onCheck: () => {
        checks += 1;
      },
    });
    running.push(looks);
    await until('it is checked', () => checks === 1);
    const [row] = await stack.rows('select looked_at from work.domain_look');
    expect(row?.looked_at).toEqual(new Date(right));
    expect(reported).toContain('domain_check');
  });
});
