import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { DeliveryClaims } from '../../processors/webhooks/delivery/claims.ts';
import { deliveries, forgetDeliveriesBefore } from '../../projections/webhooks/deliveries/projection.ts';
import { AT } from '../lookup/lookup-events.ts';
import {
  aDelivery,
  anEndpoint,
  aRecovery,
  attempted,
  created,
  enabled,
  expired,
  partnerDeleted,
  queued,
  recoveryCompleted,
  recoveryRequested,
  removed,
  resumed,
  retried,
  retriedAll,
  suspended,
  type TestDelivery,
  type TestEndpoint,
} from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  db = await stack.session('set search_path to read');
});
const clear = () => db.query(`truncate ${deliveries.tables.join(', ')}`);
beforeEach(clear);
afterAll(() => stack.close());

const metadata: EventMetadata = { $correlationId: 'c', $causationId: 'c', at: isoTime(AT) };
const log = (events: readonly { type: string; data: object }[], first = 100): RecordedEvent[] =>
  events.map((event, index) => ({
    ...event,
    id: randomUUID(),
    metadata,
    stream: event.type.startsWith('webhooks.Endpoints')
      ? endpointsStream(endpoint.partner_id)
      : 'deliveries-x',
    revision: index,
    position: BigInt(first + index) as Position,
  }));
const rows = async () => ({
  deliveries: (await db.query('select * from webhook_delivery order by position')).rows,
  totals: (
    await db.query(
      `select webhook_id, day::text, state, deliveries::int from webhook_total
       where deliveries <> 0 order by webhook_id, day, state`,
    )
  ).rows,
  health: (await db.query('select * from webhook_health order by webhook_id')).rows,
  recoveries: (await db.query('select * from webhook_recovery order by position')).rows,
  attempts: (
    await db.query(
      `select day::text, hour, outcome, http_status, attempts::int, duration_ms::int
       from webhook_attempt_hour order by day, hour, outcome`,
    )
  ).rows,
});
const counted = async () =>
  (
    await db.query(
      `select webhook_id, (created_at at time zone 'UTC')::date::text as day, state, count(*)::int as deliveries
       from webhook_delivery group by 1, 2, 3 order by 1, 2, 3`,
    )
  ).rows;
/** Applies the events in one batch, then the batch again, then one by one. */
const applied = async (...events: { type: string; data: object }[]) => {
  const stored = log(events);
  await deliveries.apply(stored, db);
  const atOnce = await rows();
  await deliveries.apply(stored, db);
  expect(await rows(), 'delivered twice').toEqual(atOnce);
  await clear();
  for (const event of stored) await deliveries.apply([event], db);
  expect(await rows(), 'one by one').toEqual(atOnce);
  expect(await counted(), 'counted').toEqual(atOnce.totals);
  return atOnce;
};

const endpoint = anEndpoint();

describe('the read model of deliveries', () => {
  it('follows a delivery to its end', async () => {
    const d = aDelivery(endpoint);
    const found = await applied(
      created(endpoint, AT),
      queued(d, AT, '42'),
      attempted(d, { at: AT + 1_000, error: 'timeout' }),
      attempted(d, { attempt: 2, at: AT + MINUTE }),
    );
    expect(found.deliveries).toMatchObject([
      {
        ...d,
        state: 'delivered',
        cycle: 1,
        attempts: 2,
        cycle_attempts: 2,
        position: '101',
        last_attempt_at: new Date(AT + MINUTE - 100),
        delivered_at: new Date(AT + MINUTE),
        next_attempt_at: null,
        http_status: 200,
        error: null,
      },
    ]);
    const of = { day: isoTime(AT).slice(0, 10), hour: new Date(AT - (AT % HOUR)), duration_ms: 100 };
    expect(found.attempts).toEqual([
      { ...of, outcome: 'delivered', http_status: 200, attempts: 1 },
      { ...of, outcome: 'timeout', http_status: 0, attempts: 1 },
    ]);
    expect(found.health).toMatchObject([{ pending: '0', failures_in_row: 0, fanned_out_to: '42' }]);
  });

  it('takes an attempt that a wrong clock made last for thousands of years', async () => {
    const d = aDelivery(endpoint);
    const long = attempted(d, { at: AT });
    const found = await applied(queued(d, AT), {
      ...long,
      data: { ...long.data, ended_at: '9999-12-31T23:59:59.999Z' },
    } as typeof long);
    expect(found.deliveries).toMatchObject([{ state: 'delivered', last_duration_ms: 2 ** 31 - 1 }]);
  });

  it('keeps the first of two outcomes of one attempt: a late timeout undoes no success', async () => {
    const d = aDelivery(endpoint);
    const found = await applied(
      queued(d, AT),
      queued(d, AT + 5),
      attempted(d, { at: AT + 1_000 }),
      attempted(d, { at: AT + 2_000, error: 'timeout' }),
      retried(d, 2, AT + 3_000),
      retried(d, 2, AT + 4_000),
      attempted(d, { at: AT + 5_000, error: 'timeout' }),
    );
    expect(found.deliveries).toMatchObject([
      {
        state: 'pending',
        cycle: 2,
        attempts: 1,
        cycle_attempts: 0,
        created_at: new Date(AT),
        position: '100',
        cycle_started_at: new Date(AT + 3_000),
        next_attempt_at: new Date(AT + 3_000),
        delivered_at: null,
      },
    ]);
    expect(found.health).toMatchObject([{ failures_in_row: 0, pending: '1' }]);
  });

  it('ignores a retry of an expired delivery and starts no second cycle of a pending one', async () => {
    const [gone, waiting] = [aDelivery(endpoint), aDelivery(endpoint)];
    const found = await applied(
      queued(gone, AT),
      queued(waiting, AT),
      expired(endpoint, [gone]),
      retried(gone, 2, AT + 1),
      retried(waiting, 2, AT + 1),
    );
    expect(found.deliveries).toMatchObject([
      { state: 'expired', cycle: 1, next_attempt_at: null },
      { state: 'pending', cycle: 1 },
    ]);
  });

  it('keeps the attempts before the last one, over all cycles', async () => {
    const d = aDelivery(endpoint);
    const found = await applied(
      queued(d, AT),
      attempted(d, { at: AT + 1_000, error: 'http_status' }),
      attempted(d, { attempt: 2, at: AT + 2_000 }),
      retried(d, 2, AT + 3_000),
      attempted(d, { cycle: 2, at: AT + 4_000, error: 'timeout' }),
    );
    expect(found.deliveries).toMatchObject([
      {
        last_duration_ms: 100,
        error: 'timeout',
        earlier_attempts: [
          { started_at: isoTime(AT + 900), duration_ms: 100, http_status: 500, error: 'http_status' },
          { started_at: isoTime(AT + 1_900), duration_ms: 100, http_status: 200, error: null },
        ],
      },
    ]);
  });

  it('keeps at most 19 attempts before the last one', async () => {
    const d = aDelivery(endpoint);
    const [row] = (
      await applied(
        queued(d, AT),
        ...Array.from({ length: 25 }, (_, n) =>
          attempted(d, { attempt: n + 1, at: AT + n, error: 'timeout' }),
        ),
      )
    ).deliveries;
    expect(row.earlier_attempts).toHaveLength(19);
    expect(row.earlier_attempts.at(-1).started_at).toBe(isoTime(AT + 23 - 100));
  });

  it('begins a new cycle in a recovery for what failed or waits, once, and leaves what is due as it is', async () => {
    const [failed, waits, due, done, gone] = Array.from({ length: 5 }, () => aDelivery(endpoint)) as [
      TestDelivery,
      TestDelivery,
      TestDelivery,
      TestDelivery,
      TestDelivery,
    ];
    const recovery = aRecovery(AT);
    const all = [failed, waits, due, done, gone].map((d) => [d, 2] as const);
    const {
      deliveries: found,
      recoveries,
      health,
    } = await applied(
      created(endpoint, AT),
      ...[failed, waits, due, done, gone].map((d) => queued(d, AT)),
      attempted(failed, { at: AT + 1_000, error: 'timeout', final: true }),
      attempted(waits, { at: AT + 2_000, error: 'timeout' }),
      expired(endpoint, [gone]),
      recoveryRequested(endpoint, recovery, AT + 3_000, { deliveries: 3, held_back: true }),
      attempted(done, { at: AT + 3_500 }),
      retriedAll(endpoint, recovery, all, AT + 4_000),
      // A repeat, with the same cycles.
      retriedAll(endpoint, recovery, all, AT + 5_000),
      recoveryCompleted(endpoint, recovery, AT + 6_000),
      attempted(failed, { cycle: 2, at: AT + 7_000 }),
    );
    const { recovery_id } = recovery;
    expect(found).toMatchObject([
      { ...failed, state: 'delivered', cycle: 2, recovery_id },
      { ...waits, state: 'pending', cycle: 2, cycle_attempts: 0, next_attempt_at: new Date(AT + 4_000) },
      { ...due, state: 'pending', cycle: 1, next_attempt_at: new Date(AT), recovery_id },
      { ...done, state: 'delivered', cycle: 1, recovery_id },
      { ...gone, state: 'expired', cycle: 1, recovery_id: null },
    ]);
    const counts = { pending: '2', delivered: '2', failed: '0', cancelled: '0', expired: '0' };
    const times = { created_at: new Date(AT + 3_000), completed_at: new Date(AT + 6_000) };
    expect(recoveries).toMatchObject([
      { recovery_id, deliveries: '3', held_back: true, ...counts, ...times },
    ]);
    expect(health).toMatchObject([{ pending: '2' }]);
  });

  it('counts a delivery that was counted at the request and arrives before its turn, and no other one', async () => {
    const [early, late, other] = [aDelivery(endpoint), aDelivery(endpoint), aDelivery(endpoint)];
    const recovery = aRecovery(AT);
    const { deliveries: found, recoveries } = await applied(
      created(endpoint, AT),
      ...[early, late].flatMap((d) => [queued(d, AT), attempted(d, { at: AT + 1_000, error: 'dns' })]),
      queued(other, AT),
      recoveryRequested(endpoint, recovery, AT + 2_000, { deliveries: 2 }),
      attempted(early, { attempt: 2, at: AT + 3_000 }),
      attempted(other, { at: AT + 3_000 }),
      retriedAll(endpoint, recovery, [[late, 2]], AT + 4_000),
      attempted(late, { cycle: 2, at: AT + 5_000 }),
      recoveryCompleted(endpoint, recovery, AT + 6_000),
    );
    const { recovery_id } = recovery;
    expect(found.map((row) => row.recovery_id)).toEqual([recovery_id, recovery_id, null]);
    expect(recoveries).toMatchObject([{ deliveries: '2', delivered: '2', pending: '0' }]);
  });

  it('counts the outcome of an attempt that was under way when its delivery was recovered', async () => {
    const d = aDelivery(endpoint);
    const recovery = aRecovery(AT);
    const { deliveries: found } = await applied(
      queued(d, AT),
      retriedAll(endpoint, recovery, [[d, 2]], AT + 1_000),
      attempted(d, { at: AT + 2_000 }),
    );
    expect(found).toMatchObject([{ state: 'delivered', attempts: 1, cycle: 1 }]);
  });

  it('leaves the counts of a recovery to it when its deliveries are retried again', async () => {
    const [again, taken] = [aDelivery(endpoint), aDelivery(endpoint)];
    const [first, second] = [aRecovery(AT), aRecovery(AT)];
    const { recoveries } = await applied(
      created(endpoint, AT),
      ...[again, taken].flatMap((d) => [queued(d, AT), attempted(d, { at: AT, error: 'dns', final: true })]),
      recoveryRequested(endpoint, first, AT + 1_000),
      retriedAll(
        endpoint,
        first,
        [again, taken].map((d) => [d, 2] as const),
        AT + 1_000,
      ),
      attempted(again, { cycle: 2, at: AT + 2_000, error: 'dns', final: true }),
      attempted(taken, { cycle: 2, at: AT + 2_000, error: 'dns' }),
      retried(again, 3, AT + 3_000),
      attempted(again, { cycle: 3, at: AT + 3_000 }),
      recoveryRequested(endpoint, second, AT + 4_000),
      retriedAll(endpoint, second, [[taken, 3]], AT + 4_000),
    );
    expect(recoveries).toMatchObject([
      { recovery_id: first.recovery_id, failed: '1', cancelled: '1', pending: '0', delivered: '0' },
      { recovery_id: second.recovery_id, failed: '0', cancelled: '0', pending: '1' },
    ]);
  });

  it.each([null, isoTime(AT + 2_000)])(
    'takes from a snapshot whether a recovery has ended, if its request was truncated: %s',
    async (completed_at) => {
      const d = aDelivery(endpoint);
      const recovery = aRecovery(AT);
      const snapshotted = {
        ...created(endpoint, AT).data,
        ...{ enabled: true, updated_at: isoTime(AT), deleted_at: null, previous: null },
        ...{ secret_rotation_until: null },
        recovery: {
          ...{ recovery_id: recovery.recovery_id, since: isoTime(AT), deliveries: 1, held_back: false },
          ...{ requested_at: isoTime(AT), completed_at },
        },
      };
      const { recoveries } = await applied(
        queued(d, AT),
        attempted(d, { at: AT, error: 'dns', final: true }),
        retriedAll(endpoint, recovery, [[d, 2]], AT + 1_000),
        { type: 'webhooks.EndpointsSnapshotted.v1', data: { endpoints: [snapshotted] } },
      );
      expect(recoveries).toMatchObject([
        { pending: '1', completed_at: completed_at === null ? null : new Date(completed_at) },
      ]);
    },
  );

  it('counts an endpoint as suspended while it is paused or its breaker is open, and once when both hold', async () => {
    const ds = Array.from({ length: 11 }, () => aDelivery(endpoint));
    const [first, last] = [ds[0], ds[10]] as [TestDelivery, TestDelivery];
    const failures = ds.slice(0, 10).map((d, n) => attempted(d, { at: AT + n, error: 'connect' }));
    const { health, deliveries: found } = await applied(
      ...ds.map((d) => queued(d, AT)),
      ...failures,
      enabled(endpoint, false, AT + MINUTE),
      enabled(endpoint, true, AT + 3 * MINUTE),
      attempted(last, { at: AT + 4 * MINUTE + 9 }),
      queued(aDelivery(endpoint), AT + 5 * MINUTE),
      enabled(endpoint, false, AT + 6 * MINUTE),
      attempted(first, { attempt: 2, at: AT + 7 * MINUTE, error: 'timeout', final: true }),
    );
    expect(health).toMatchObject([
      { failures_in_row: 1, still_ms: String(4 * MINUTE), still_since: new Date(AT + 6 * MINUTE) },
    ]);
    expect(found.at(-1)).toMatchObject({ stood_still_ms: String(4 * MINUTE) });
  });
});

describe('the deliveries of a partner who is suspended', () => {
  it('stand still from then on until the partner is resumed, those of a new endpoint too', async () => {
    const other = anEndpoint(endpoint.partner_id);
    const [first, second] = [aDelivery(endpoint), aDelivery(other)];
    const events = [
      created(endpoint, AT),
      queued(first, AT),
      enabled(endpoint, false, AT + MINUTE),
      suspended(endpoint, AT + 2 * MINUTE),
      enabled(endpoint, true, AT + 3 * MINUTE),
      created(other, AT + 4 * MINUTE),
      queued(second, AT + 5 * MINUTE),
    ];
    await deliveries.apply(log(events), db);
    const since = new Date(AT + 2 * MINUTE);
    expect((await rows()).health).toMatchObject(
      [
        { webhook_id: endpoint.webhook_id, still_since: new Date(AT + MINUTE), still_ms: '0' },
        { webhook_id: other.webhook_id, still_since: since, still_ms: '0' },
      ]
        .map((row) => ({ ...row, paused_at: null, partner_suspended_at: since }))
        .toSorted((one, next) => (one.webhook_id < next.webhook_id ? -1 : 1)),
    );
    await deliveries.apply(log([resumed(endpoint, AT + 9 * MINUTE)], 200), db);
    const after = await rows();
    for (const row of after.health)
      expect(row).toMatchObject({ still_since: null, partner_suspended_at: null });
    const ran = after.health.map(({ webhook_id, still_ms }) => {
      const d = after.deliveries.find((one) => one.webhook_id === webhook_id);
      return Number(still_ms) - Number(d?.stood_still_ms);
    });
    expect(ran.toSorted()).toEqual([4 * MINUTE, 8 * MINUTE]);
  });

  it('are not claimed, and those of a deleted partner never again', async () => {
    const events = [created(endpoint, AT), queued(aDelivery(endpoint), AT), suspended(endpoint, AT)];
    await deliveries.apply(log(events), db);
    await stack.pool.query(`insert into read.projection (name, position) values ('of the test', 1000)`);
    const rules = { leaseMs: MINUTE, concurrency: 1, startsPerSecond: 10, probeEveryMs: 1 };
    const claims = new DeliveryClaims(stack.pool, {
      ...rules,
      holder: randomUUID(),
      projections: ['of the test'],
      sources: [],
    });
    const take = () => claims.take([{ webhookId: endpoint.webhook_id, count: 1 }], AT + HOUR);
    const none = [{ webhookId: endpoint.webhook_id, claims: [], againAt: Number.POSITIVE_INFINITY }];
    expect(await take()).toEqual(none);
    await deliveries.apply(log([partnerDeleted(endpoint, AT)], 200), db);
    expect(await take()).toEqual(none);
    await clear();
    await deliveries.apply(log(events.slice(0, 2), 300), db);
    expect((await take())[0]?.claims).toHaveLength(1);
  });
});

describe('the read model of deliveries after random events', () => {
  const first = anEndpoint();
  const endpoints = [first, anEndpoint(first.partner_id)] as [TestEndpoint, TestEndpoint];
  const ds = Array.from({ length: 6 }, (_, n) => aDelivery(endpoints[n % 2] as TestEndpoint));
  const anyDelivery = fc.constantFrom(...ds);
  // A recovery covers deliveries of its own endpoint.
  const ofFirst = fc.constantFrom(...ds.filter((d) => d.webhook_id === first.webhook_id));
  const time = fc.nat(40).map((n) => AT + n * 20 * MINUTE);
  const error = fc.constantFrom(null, 'timeout' as const, 'connect' as const, 'timeout' as const);
  const small = fc.integer({ min: 1, max: 3 });
  const recoveries = [aRecovery(AT), aRecovery(AT)];
  const event = fc.oneof(
    {
      arbitrary: fc
        .tuple(fc.constantFrom(...recoveries), fc.array(fc.tuple(ofFirst, small), { maxLength: 4 }), time)
        .map(([recovery, some, at]) => retriedAll(endpoints[0], recovery, some, at)),
      weight: 2,
    },
    { arbitrary: fc.tuple(anyDelivery, time).map(([d, at]) => queued(d, at, String(at))), weight: 4 },
    {
      arbitrary: fc
        .tuple(anyDelivery, fc.record({ at: time, error, cycle: small, attempt: small, final: fc.boolean() }))
        .map(([d, made]) => attempted(d, made)),
      weight: 12,
    },
    {
      arbitrary: fc.tuple(anyDelivery, small, time).map(([d, cycle, at]) => retried(d, cycle, at)),
      weight: 3,
    },
    {
      arbitrary: fc.subarray(ds, { maxLength: 2 }).map((some) =>
        expired(
          endpoints[0],
          some.filter((d) => d.webhook_id === endpoints[0].webhook_id),
        ),
      ),
      weight: 1,
    },
    {
      arbitrary: fc
        .tuple(fc.constantFrom(...endpoints), fc.boolean(), time)
        .map(([of, is, at]) => enabled(of, is, at)),
      weight: 2,
    },
    {
      arbitrary: fc.tuple(fc.constantFrom(...endpoints), time).map(([of, at]) => removed(of, at)),
      weight: 1,
    },
  );

  it('is the same however the log is cut into batches, and its totals are right', async () => {
    const history = fc.array(event, { minLength: 1, maxLength: 80 });
    const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(history, cuts, async (events, sizes) => {
        const stored = log(events);
        await clear();
        await deliveries.apply(stored, db);
        const atOnce = await rows();
        expect(await counted()).toEqual(atOnce.totals);
        for (const { webhook_id, pending } of atOnce.health) {
          const waiting = atOnce.deliveries.filter(
            (d) => d.webhook_id === webhook_id && d.state === 'pending',
          );
          expect(Number(pending)).toBe(waiting.length);
        }
        for (const { recovery_id, pending } of atOnce.recoveries) {
          const waiting = atOnce.deliveries.filter(
            (d) => d.recovery_id === recovery_id && d.state === 'pending',
          );
          expect(Number(pending)).toBe(waiting.length);
        }
        await clear();
        for (let at = 0, n = 0; at < stored.length; n += 1) {
          const size = sizes[n % sizes.length] ?? 1;
          await deliveries.apply(stored.slice(at, at + size), db);
          at += size;
        }
        expect(await rows()).toEqual(atOnce);
      }),
      { numRuns: 60 },
    );
  });
});

describe('the cleanup after 90 days', () => {
  it('removes deliveries made before the day, with their totals', async () => {
    const [old, young] = [aDelivery(endpoint), aDelivery(endpoint)];
    const later = Date.parse('2026-03-14T00:00:00.000Z');
    const events = [
      ...[queued(old, later - 1), queued(young, later)],
      ...[old, young].map((d) => attempted(d, { at: later + MINUTE })),
      expired(endpoint, [old, young]),
    ];
    await deliveries.apply(log(events), db);
    await forgetDeliveriesBefore(stack.pool, '2026-03-14');
    const left = await rows();
    expect(left.deliveries).toMatchObject([{ delivery_id: young.delivery_id }]);
    expect(left.totals).toEqual(await counted());
    expect(left.attempts).toMatchObject([{ day: '2026-03-14', attempts: 1 }]);
  });
});
