import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { HOUR, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { deliveryEvents, endpointChangeEvents } from '../../domain/webhooks/events.ts';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { deliveries, forgetDeliveriesBefore } from '../../projections/webhooks/deliveries.ts';
import { AT } from '../lookup/lookup-events.ts';
import {
  aDelivery,
  anEndpoint,
  attempted,
  created,
  enabled,
  expired,
  queued,
  removed,
  retried,
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
    stream: 'deliveries-x',
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

describe('the read model of deliveries after random events', () => {
  const endpoints = [anEndpoint(), anEndpoint()] as [TestEndpoint, TestEndpoint];
  const ds = Array.from({ length: 6 }, (_, n) => aDelivery(endpoints[n % 2] as TestEndpoint));
  const anyDelivery = fc.constantFrom(...ds);
  const time = fc.nat(40).map((n) => AT + n * 20 * MINUTE);
  const error = fc.constantFrom(null, 'timeout' as const, 'connect' as const, 'timeout' as const);
  const small = fc.integer({ min: 1, max: 3 });
  const event = fc.oneof(
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

describe('a rebuild of deliveries', () => {
  it('equals the read model in use', async () => {
    const ds = Array.from({ length: 30 }, () => aDelivery(endpoint));
    const events = [
      created(endpoint, AT),
      ...ds.map((d, n) => queued(d, AT + n, String(n))),
      ...ds.map((d, n) =>
        attempted(d, { at: AT + MINUTE + n, error: n < 12 ? 'timeout' : null, final: n < 4 }),
      ),
      enabled(endpoint, false, AT + 2 * MINUTE),
      ...ds.slice(0, 2).map((d) => retried(d, 2, AT + 3 * MINUTE)),
      expired(endpoint, ds.slice(20)),
      enabled(endpoint, true, AT + 4 * MINUTE),
    ];
    const schemas = { ...endpointChangeEvents, ...deliveryEvents };
    await stack.store.append('deliveries-x', 'any', toNewEvents(schemas, events, stack.context()));
    const running = stack.project([deliveries]);
    await stack.caughtUp([deliveries]);
    const before = await rows();
    expect(before.deliveries).toHaveLength(30);
    await rebuild({ store: stack.store, url: stack.url, projections: [deliveries] });
    expect(await rows()).toEqual(before);
    await running.stop();
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
