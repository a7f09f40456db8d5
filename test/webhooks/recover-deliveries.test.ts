import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { endpointsStream } from '../../domain/webhooks/endpoints.ts';
import {
  type DeliveryEvent,
  deliveryEvents,
  type EndpointChangeEvent,
  endpointEvents,
} from '../../domain/webhooks/events.ts';
import { type EventStore, OutcomeUnknown, type Position } from '../../event-store/port.ts';
import { recoverDeliveries } from '../../processors/webhooks/recover-deliveries.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import {
  aDelivery,
  anEndpoint,
  aRecovery,
  attempted,
  created,
  enabled,
  queued,
  recoveryRequested,
  removed,
  type TestDelivery,
  type TestEndpoint,
  type TestRecovery,
} from '../support/deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let endpoint: TestEndpoint;
let AT: number;
beforeAll(async () => {
  stack = await startTestStack();
  AT = stack.clock.now();
  stack.project([deliveries]);
});
beforeEach(() => {
  endpoint = anEndpoint();
});
afterAll(() => stack.close());

const append = async (...events: DeliveryEvent[]): Promise<void> => {
  await stack.store.append('deliveries-x', 'any', toNewEvents(deliveryEvents, events, stack.context()));
  await stack.caughtUp([deliveries]);
};
const appendToEndpoint = async (...events: EndpointChangeEvent[]): Promise<void> => {
  const stream = endpointsStream(endpoint.partner_id);
  await stack.store.append(stream, 'any', toNewEvents(endpointEvents, events, stack.context()));
  await stack.caughtUp([deliveries]);
};
const some = (count: number): TestDelivery[] => Array.from({ length: count }, () => aDelivery(endpoint));
const failed = (d: TestDelivery, at = AT) => [
  queued(d, at),
  attempted(d, { at, error: 'http_status', final: true }),
];
const request = async (over: Parameters<typeof recoveryRequested>[3] = {}): Promise<TestRecovery> => {
  const recovery = aRecovery(AT);
  await appendToEndpoint(created(endpoint, AT), recoveryRequested(endpoint, recovery, AT, over));
  return recovery;
};

interface Run {
  readonly store?: EventStore;
  readonly room?: () => boolean;
  readonly signal?: AbortSignal;
}
const run = ({
  store = stack.store,
  room = () => true,
  signal = new AbortController().signal,
}: Run = {}): Promise<void> =>
  recoverDeliveries({
    ...{ store, pool: stack.pool, clock: stack.clock, signal, pageSize: 3 },
    projected: (position: Position | null) => stack.progress.reached([deliveries.name], position, 10_000),
    reserveQueue: async () => (room() ? { release: () => undefined, confirm: () => undefined } : null),
  });
const rowsOf = (ids: readonly TestDelivery[]) =>
  stack.rows(
    'select state, cycle, recovery_id from read.webhook_delivery where delivery_id = any ($1) order by position',
    [ids.map(({ delivery_id }) => delivery_id)],
  );
const recoveryOf = async ({ recovery_id }: TestRecovery) => {
  await stack.caughtUp([deliveries]);
  return (
    await stack.rows(
      `select completed_at is not null as completed, pending::int, delivered::int, failed::int
       from read.webhook_recovery where recovery_id = $1`,
      [recovery_id],
    )
  )[0];
};
/** Fails one append: before it is written, or afterwards as if the process had died. */
const dyingStore = (nth: number, isWritten: boolean): EventStore => {
  let left = nth;
  return {
    ...stack.store,
    append: async (...args) => {
      left -= 1;
      if (left !== 0) return stack.store.append(...args);
      if (isWritten) await stack.store.append(...args);
      throw new Error('killed');
    },
  };
};

describe('the job that recovers deliveries', () => {
  it('makes due, page by page, what failed and what waits, and nothing else', async () => {
    const [gone, waiting, fresh, old] = [some(7), some(4), some(2), some(2)];
    await append(
      ...gone.flatMap((d) => failed(d)),
      ...waiting.flatMap((d) => [queued(d, AT), attempted(d, { at: AT, error: 'timeout' })]),
      ...fresh.map((d) => queued(d, AT)),
      ...old.flatMap((d) => failed(d, AT - 1)),
    );
    const recovery = await request();
    const later = some(1);
    await append(...later.flatMap((d) => failed(d)));
    await run();
    const { recovery_id } = recovery;
    for (const row of await rowsOf([...gone, ...waiting]))
      expect(row).toEqual({ state: 'pending', cycle: 2, recovery_id });
    for (const row of await rowsOf([...fresh, ...old, ...later]))
      expect(row).toMatchObject({ cycle: 1, recovery_id: null });
    expect(await recoveryOf(recovery)).toEqual({ completed: false, pending: 11, delivered: 0, failed: 0 });
    const head = await stack.store.head();
    await run();
    expect(await stack.store.head()).toBe(head);
  });

  it('completes a recovery once none of its deliveries is pending', async () => {
    const [first, last] = some(2) as [TestDelivery, TestDelivery];
    await append(...failed(first), ...failed(last));
    const recovery = await request();
    await run();
    await append(attempted(first, { cycle: 2, at: AT }));
    await run();
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 1 });
    await append(attempted(last, { cycle: 2, at: AT, error: 'http_status', final: true }));
    await run();
    expect(await recoveryOf(recovery)).toEqual({ completed: true, pending: 0, delivered: 1, failed: 1 });
    endpoint = anEndpoint();
    const next = await request();
    await run();
    const ids = [recovery.recovery_id, next.recovery_id];
    expect(await stack.rows('select * from work.recovery_due where recovery_id = any ($1)', [ids])).toEqual([
      { recovery_id: next.recovery_id },
    ]);
  });

  it('takes nothing that fails after all of its deliveries are due, though they are pending', async () => {
    const [gone, fresh] = some(2) as [TestDelivery, TestDelivery];
    await append(...failed(gone), queued(fresh, AT));
    const recovery = await request();
    await run();
    await append(attempted(fresh, { at: AT, error: 'http_status', final: true }));
    await run();
    expect(await rowsOf([fresh])).toMatchObject([{ state: 'failed', cycle: 1, recovery_id: null }]);
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 1 });
  });

  it('completes the recovery of a paused endpoint, whatever is pending', async () => {
    const [d] = some(1) as [TestDelivery];
    await append(...failed(d));
    const recovery = await request();
    await run();
    await appendToEndpoint(enabled(endpoint, false, AT));
    await run();
    expect(await recoveryOf(recovery)).toMatchObject({ completed: true, pending: 1 });
  });

  it('takes every pending delivery of an endpoint whose breaker is open', async () => {
    const waiting = some(4);
    await append(...waiting.map((d) => queued(d, AT)));
    const recovery = await request({ held_back: true });
    await run();
    // They are due already: a new cycle would send those under way twice.
    for (const row of await rowsOf(waiting))
      expect(row).toEqual({ state: 'pending', cycle: 1, recovery_id: recovery.recovery_id });
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 4 });
  });

  it('retries each delivery once, wherever the process is killed', async () => {
    // The deliveries are three pages, and each page is one append.
    for (const nth of [1, 2, 3]) {
      for (const isWritten of [false, true]) {
        endpoint = anEndpoint();
        const gone = some(7);
        await append(...gone.flatMap((d) => failed(d)));
        const recovery = await request({ deliveries: 7 });
        await expect(run({ store: dyingStore(nth, isWritten) })).rejects.toThrow('killed');
        await run();
        const found = await rowsOf(gone);
        expect(found, `${nth} ${isWritten}`).toEqual(
          gone.map(() => ({ state: 'pending', cycle: 2, recovery_id: recovery.recovery_id })),
        );
        expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 7 });
        const retried = await Array.fromAsync(
          stack.store.readStream(`deliveries-${endpoint.webhook_id}-2026-03-01`),
        );
        const named = retried.flatMap(({ data }) => (data as { deliveries: [string, number][] }).deliveries);
        expect(new Set(named.map(([id]) => id)).size).toBe(7);
      }
    }
  });

  it('completes a recovery once, if the process is killed while it does', async () => {
    for (const isWritten of [false, true]) {
      endpoint = anEndpoint();
      const recovery = await request();
      await run();
      await expect(run({ store: dyingStore(1, isWritten) })).rejects.toThrow('killed');
      await run();
      expect(await recoveryOf(recovery)).toMatchObject({ completed: true });
      const events = await Array.fromAsync(stack.store.readStream(endpointsStream(endpoint.partner_id)));
      expect(events.map(({ type }) => type)).toEqual([
        'webhooks.EndpointCreated.v1',
        'webhooks.RecoveryRequested.v1',
        'webhooks.RecoveryCompleted.v1',
      ]);
    }
  });

  it('retries each delivery once although two processes run it at a time', async () => {
    const gone = some(8);
    await append(...gone.flatMap((d) => failed(d)));
    const recovery = await request();
    await Promise.all([run(), run()]);
    for (const row of await rowsOf(gone)) expect(row).toMatchObject({ state: 'pending', cycle: 2 });
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 8 });
  });

  it('goes on with what lacked room in the queue when there is room', async () => {
    const gone = some(5);
    await append(...gone.flatMap((d) => failed(d)));
    const recovery = await request({ deliveries: 5 });
    let rooms = 4;
    await run({
      room: () => {
        rooms -= 1;
        return rooms >= 0;
      },
    });
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 4 });
    await run();
    expect(await recoveryOf(recovery)).toMatchObject({ completed: false, pending: 5 });
  });

  it('completes the recovery of a deleted endpoint without a retry', async () => {
    const [d] = some(1) as [TestDelivery];
    await append(...failed(d));
    const recovery = await request();
    await appendToEndpoint(removed(endpoint, AT));
    await run();
    expect(await rowsOf([d])).toMatchObject([{ state: 'failed', cycle: 1 }]);
    expect(await recoveryOf(recovery)).toMatchObject({ completed: true, pending: 0 });
  });

  it('goes on with other recoveries when the outcome of an append is unknown', async () => {
    const other = endpoint;
    const [theirs] = some(1) as [TestDelivery];
    await append(...failed(theirs));
    const first = await request();
    endpoint = anEndpoint();
    const [ours] = some(1) as [TestDelivery];
    await append(...failed(ours));
    const second = await request();
    const store: EventStore = {
      ...stack.store,
      append: async (stream, ...rest) => {
        if (stream.startsWith(`deliveries-${other.webhook_id}`)) throw new OutcomeUnknown('no answer');
        return stack.store.append(stream, ...rest);
      },
    };
    await expect(run({ store })).rejects.toThrow('no answer');
    expect([await recoveryOf(first), await recoveryOf(second)]).toMatchObject([
      { pending: 0 },
      { pending: 1 },
    ]);
    await run();
    expect([await recoveryOf(first), await recoveryOf(second)]).toMatchObject([
      { completed: false, pending: 1 },
      { completed: false, pending: 1 },
    ]);
  });
});
