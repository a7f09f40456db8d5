import { setImmediate } from 'node:timers/promises';
import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  StoreBusy,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import type { DeliveryClaim } from '../../processors/webhooks/delivery/claims.ts';
import { OutcomeWriter } from '../../processors/webhooks/delivery/outcome-writer.ts';
import { eventually } from '../support/eventually.ts';

const AT = Date.parse('2026-03-01T12:00:00.000Z');
const aClaim = (): DeliveryClaim => ({
  delivery_id: crypto.randomUUID(),
  webhook_id: crypto.randomUUID(),
  partner_id: crypto.randomUUID(),
  event_id: 'evt_test',
  newest_secret_only: false,
  created_at: '2026-03-01T12:00:00.000Z',
  cycle: 1,
  attempt: 1,
  ran_ms: 0,
  ahead: false,
  has_body: true,
});
const outcomeOf = ({ delivery_id, webhook_id, partner_id, cycle, attempt }: DeliveryClaim) => ({
  delivery_id,
  webhook_id,
  partner_id,
  cycle,
  attempt,
  started_at: '2026-03-01T12:00:00.000Z',
  ended_at: '2026-03-01T12:00:00.000Z',
  state: 'delivered' as const,
  http_status: 200,
  error: null,
  signed_by: 'newest' as const,
  next_attempt_at: null,
});

const MOST_APPENDS = 10_000;
type Answer = (stream: string, events: readonly NewEvent[]) => Promise<Appended>;
const takes: Answer = async () => ({ revision: 0, position: 1n as Position });

const writers: { close(ms: number): Promise<void> }[] = [];
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.close(0);
});

/** A writer over a store that answers each append as given. */
const openWriter = (answer: Answer) => {
  const state = { answer, appends: 0, written: [] as DeliveryClaim[], forgotten: [] as DeliveryClaim[] };
  const store = {
    append: (stream: string, _expected: ExpectedRevision, events: readonly NewEvent[]) => {
      state.appends += 1;
      // A loop of microtasks would hang the test instead of failing it.
      return state.appends > MOST_APPENDS
        ? new Promise<never>(() => undefined)
        : state.answer(stream, events);
    },
  } as unknown as EventStore;
  const writer = new OutcomeWriter({
    store,
    log: pino({ level: 'silent' }),
    onWritten: (claims) => void state.written.push(...claims),
    onForgotten: (claim) => void state.forgotten.push(claim),
  });
  writers.push(writer);
  const add = (claim = aClaim()): DeliveryClaim => {
    writer.add(claim, outcomeOf(claim), AT);
    return claim;
  };
  return { writer, state, add };
};

/** Whether the event loop turns `times` times; a loop of microtasks would prevent that. */
const turns = async (count: number): Promise<number> => {
  for (let n = 0; n < count; n += 1) await setImmediate();
  return count;
};

describe('the writer of delivery outcomes', () => {
  it('writes every outcome once the store accepts appends again', async () => {
    const { state, add } = openWriter(() => Promise.reject(new StoreBusy('busy')));
    const claims = [add(), add()];
    await turns(10);
    state.answer = takes;
    await eventually('the outcomes are written', () => state.written.length === 2);
    expect(new Set(state.written)).toEqual(new Set(claims));
  });

  it('resends outcomes that may be stored apart from later ones, because the stores reject a mix', async () => {
    const stored = new Set<string>();
    const storing: Answer = async (stream, events) => {
      const known = events.filter(({ id }) => stored.has(id));
      if (known.length > 0 && known.length < events.length) throw new WrongExpectedRevision(stream, 1);
      for (const { id } of events) stored.add(id);
      return { revision: stored.size - 1, position: null };
    };
    let isAnswered = false;
    const { state, add } = openWriter(async (stream, events) => {
      const appended = await storing(stream, events);
      if (!isAnswered) throw new OutcomeUnknown('no answer');
      return appended;
    });
    const first = aClaim();
    const claims = [add(first)];
    await turns(10);
    claims.push(add({ ...first, delivery_id: crypto.randomUUID() }));
    isAnswered = true;
    await eventually('the outcomes are written', () => state.written.length === claims.length);
    expect(stored.size).toBe(claims.length);
  });

  it('closes while an append hangs', async () => {
    const { writer, add } = openWriter(() => new Promise<never>(() => undefined));
    add();
    await turns(10);
    await expect(writer.close(20)).resolves.toBeUndefined();
  });

  it('drops outcomes whose stream has expired and reports them', async () => {
    const gone = aClaim();
    const { writer, state, add } = openWriter((stream) =>
      stream.includes(gone.webhook_id) ? Promise.reject(new StreamExpired(stream)) : takes(stream, []),
    );
    add(gone);
    const there = add();
    await writer.close(1_000);
    expect(state.forgotten).toEqual([gone]);
    expect(state.written).toEqual([there]);
    expect(state.appends).toBe(2);
  });
});
