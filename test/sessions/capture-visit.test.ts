import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  type Capture,
  type CaptureVisit,
  createCaptureVisit,
} from '../../commands/sessions/capture-visit.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import {
  type EventStore,
  OutcomeUnknown,
  type RecordedEvent,
  StoreUnavailable,
} from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { createDayKeys, type DayKeys } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let dayKeys: DayKeys;
let otherStore: EventStore;
beforeAll(async () => {
  stack = await startTestStack();
  dayKeys = createDayKeys({ pool: stack.pool, master: masterKeyFrom(randomBytes(32)), clock: stack.clock });
  otherStore = createPostgresEventStore({ url: stack.url, now: () => stack.clock.now() });
});
afterAll(async () => {
  await otherStore.close();
  await stack.close();
});
const START = Date.parse('2026-03-01T12:00:00.000Z');
afterEach(() => {
  stack.clock.set(START);
});

let room = true;
let entered = 0;
let happened = 0;
const reserveQueue = async () => {
  if (!room) return null;
  entered += 1;
  return {
    release: () => {
      entered -= 1;
    },
    confirm: () => {
      happened += 1;
    },
  };
};

const partner_id = randomUUID();
const typesOf = (events: readonly RecordedEvent[]) => events.map(({ type }) => type.split('.')[1]);

/** Creates a tab on its own tracker, and the results of its visits. */
const aTab = (store: EventStore = stack.store) => {
  const visitor = { tracker_id: randomUUID(), token: randomUUID(), ip: '8.8.8.8', visitor_country: 'US' };
  /** Captures as another process does, which has not cached the tab. */
  const fresh = (by: EventStore = store): CaptureVisit => createCaptureVisit(by, dayKeys, reserveQueue);
  return {
    capture: fresh(),
    fresh,
    send: (capture: CaptureVisit, over: Partial<Capture> = {}) =>
      capture(
        { ...visitor, partner_id, visit_id: randomUUID(), custom: {}, ...over },
        { ...stack.context(), partnerId: partner_id },
      ),
    /** The events of all streams that the tab has had. */
    events: async (): Promise<RecordedEvent[]> => {
      const rows = await stack.rows(
        `select stream from eventlog.event where data->>'tracker_id' = $1 group by stream order by min(position)`,
        [visitor.tracker_id],
      );
      const streams = rows.map(({ stream }) => Array.fromAsync(stack.store.readStream(String(stream))));
      return (await Promise.all(streams)).flat();
    },
  };
};

describe('a captured visit', () => {
  it('begins a session, continues it, and is written once', async () => {
    const { capture, send, events, fresh } = aTab();
    const visit_id = randomUUID();
    expect(await send(capture, { visit_id })).toBe('session');
    expect(await send(capture)).toBe('visit');
    expect(await send(capture, { visit_id })).toBe('retry');
    expect(await send(fresh(), { visit_id })).toBe('retry');
    expect(await send(fresh())).toBe('visit');
    expect(typesOf(await events())).toEqual(['SessionCreated', 'SessionVisited', 'SessionVisited']);
  });

  it('seals address and first labels under the key of its day and expires with its session', async () => {
    const { capture, send, events } = aTab();
    await send(capture, { custom: { plan: 'secret plan' } });
    stack.clock.advance(MINUTE);
    await send(capture, { custom: { plan: 'another' } });
    const [first, second] = await events();
    expect(JSON.stringify([first?.data, second?.data])).not.toMatch(/8\.8\.8\.8|secret plan|another/);
    expect(first?.stream).toMatch(/^tab-[0-9a-f-]{36}$/);
    for (const event of [first, second]) {
      expect(event?.metadata).toMatchObject({ partner_id, expires_at: '2026-03-31T12:00:00.000Z' });
    }
    const data = first?.data as { session_id: string; sealed: string };
    const key = await dayKeys.of('2026-03-01');
    const plain = key?.open(Buffer.from(data.sealed, 'base64'), data.session_id);
    expect(JSON.parse(String(plain))).toEqual({ ip: '8.8.8.8', custom: { plan: 'secret plan' } });
    expect(() => key?.open(Buffer.from(data.sealed, 'base64'), randomUUID())).toThrow();
  });

  it('begins no session while the delivery queue is full, and continues an existing one', async () => {
    const [old, fresh] = [aTab(), aTab()];
    const visit_id = randomUUID();
    await old.send(old.capture, { visit_id });
    room = false;
    onTestFinished(() => {
      room = true;
    });
    expect(await fresh.send(fresh.capture)).toBe('full');
    expect(await old.send(old.capture)).toBe('visit');
    expect(await old.send(old.fresh())).toBe('visit');
    expect(await old.send(old.fresh(), { visit_id })).toBe('retry');
    expect(await fresh.events()).toEqual([]);
    room = true;
    expect(await fresh.send(fresh.capture)).toBe('session');
  });

  it('releases its slot in the queue when it began no session', async () => {
    const { capture, send, fresh } = aTab();
    const [before, happenedBefore] = [entered, happened];
    await send(capture);
    expect(entered).toBe(before + 1);
    expect(happened).toBe(happenedBefore + 1);
    expect(await send(fresh())).toBe('visit');
    expect(entered).toBe(before + 1);
    const failing = (failure: Error): EventStore => ({
      ...stack.store,
      append: () => Promise.reject(failure),
    });
    const elsewhere = { token: randomUUID() };
    const away = fresh(failing(new StoreUnavailable('away')));
    await expect(send(away, elsewhere)).rejects.toThrow(StoreUnavailable);
    expect(entered).toBe(before + 1);
    const unsure = fresh(failing(new OutcomeUnknown('no answer')));
    await expect(send(unsure, elsewhere)).rejects.toThrow(OutcomeUnknown);
    expect(entered).toBe(before + 2);
    expect(happened).toBe(happenedBefore + 1);
  });

  it('with the same token on another tracker belongs to another tab', async () => {
    const { capture, send } = aTab();
    const visit_id = randomUUID();
    expect(await send(capture, { visit_id })).toBe('session');
    expect(await send(capture, { visit_id, tracker_id: randomUUID() })).toBe('session');
  });

  it.each(['one process', 'two processes'])(
    'is one of fifty concurrent ones that make one session, in %s',
    async (where) => {
      const { fresh, send, events } = aTab();
      const captures = [fresh(), where === 'one process' ? null : fresh(otherStore)] as const;
      const [here, there] = captures;
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, n) => send(n % 2 === 0 || there === null ? here : there)),
      );
      expect(outcomes.toSorted()).toEqual(['session', ...Array(49).fill('visit')]);
      expect(typesOf(await events()).filter((type) => type === 'SessionCreated')).toHaveLength(1);
    },
  );

  it('is written once when it is sent fifty times at once', async () => {
    const { fresh, send, events } = aTab();
    const [here, there] = [fresh(), fresh(otherStore)];
    const visit_id = randomUUID();
    await Promise.all(Array.from({ length: 50 }, (_, n) => send(n % 2 === 0 ? here : there, { visit_id })));
    expect(await events()).toHaveLength(1);
  });

  it('costs one append and no read, unless another process appended first', async () => {
    let [appends, reads] = [0, 0];
    const counting: EventStore = {
      ...stack.store,
      append: (...args) => {
        appends += 1;
        return stack.store.append(...args);
      },
      readStream: (...args) => {
        reads += 1;
        return stack.store.readStream(...args);
      },
    };
    const { capture, send, fresh } = aTab(counting);
    await send(capture);
    await send(capture);
    expect([appends, reads]).toEqual([2, 0]);
    await send(fresh(stack.store));
    expect(await send(capture)).toBe('visit');
    expect([appends, reads]).toEqual([4, 1]);
  });
});

describe('a visit on a stream whose events have expired', () => {
  it('continues behind the hidden events', async () => {
    const { capture, send, fresh, events } = aTab();
    await send(capture);
    stack.clock.advance(20 * MINUTE);
    await send(capture, { ip: '9.9.9.9' });
    stack.clock.advance(5 * MINUTE);
    expect(await send(capture)).toBe('visit');
    // The first session, whose visit came last, has expired; the second has not.
    stack.clock.set(START + 30 * DAY + 10 * MINUTE);
    expect(typesOf(await events())).toEqual(['SessionCreated']);
    expect(await send(fresh())).toBe('session');
    expect(await send(fresh(otherStore))).toBe('visit');
    expect((await events()).map(({ revision }) => revision)).toEqual([1, 3, 4]);
  });

  it('continues when all events are hidden', async () => {
    const { capture, send, fresh, events } = aTab();
    const visit_id = randomUUID();
    await send(capture, { visit_id });
    stack.clock.advance(31 * DAY);
    expect(await events()).toEqual([]);
    expect(await send(fresh(), { visit_id })).toBe('session');
    expect(await send(capture)).toBe('visit');
    expect((await events()).map(({ revision }) => revision)).toEqual([1, 2]);
  });

  it('continues in another stream once the stream was deleted', async () => {
    const { capture, send, fresh, events } = aTab();
    await send(capture);
    const [first] = await events();
    const stream = first?.stream ?? '';
    for (const generation of [1, 2]) {
      stack.clock.advance(31 * DAY);
      await stack.store.expire(generation === 1 ? stream : `${stream}-1`, 0);
      const visit_id = randomUUID();
      expect(await send(capture, { visit_id })).toBe('session');
      expect(await send(fresh(), { visit_id })).toBe('retry');
      expect((await events()).map((event) => event.stream)).toEqual([`${stream}-${generation}`]);
    }
    expect(await send(fresh())).toBe('visit');
  });
});

describe('a visit when the store fails', () => {
  it('reports an unknown outcome, and the same visit again is written once', async () => {
    let lost = true;
    const losing: EventStore = {
      ...stack.store,
      append: async (...args) => {
        const appended = await stack.store.append(...args);
        if (lost) throw new OutcomeUnknown('the answer was lost');
        return appended;
      },
    };
    const { capture, send, events } = aTab(losing);
    const visit_id = randomUUID();
    await expect(send(capture, { visit_id })).rejects.toThrow(OutcomeUnknown);
    lost = false;
    expect(await send(capture, { visit_id })).toBe('retry');
    expect(await send(capture)).toBe('visit');
    expect(await events()).toHaveLength(2);
  });

  it('reports the failure, and the waiting visits of the same tab proceed', async () => {
    let away = true;
    const failing: EventStore = {
      ...stack.store,
      append: async (...args) => {
        if (!away) return stack.store.append(...args);
        away = false;
        throw new StoreUnavailable('away');
      },
    };
    const { capture, send } = aTab(failing);
    const outcomes = await Promise.allSettled([send(capture), send(capture)]);
    expect(outcomes).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: 'session' }]);
  });
});
