import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  completeReveal,
  createRevealSession,
  type RevealableSession,
  type RevealDeps,
  type RevealRequest,
} from '../../commands/reveals/reveal-session.ts';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { REVEAL_PREFIX } from '../../domain/reveals/events.ts';
import { OutcomeUnknown, StoreUnavailable } from '../../event-store/port.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { revealResult } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
const faults = faultyStore();
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const RESULT = revealResult(true);

/** One process with a session that can be revealed; the log is shared by all of them. */
const aProcess = (over: Partial<RevealDeps> = {}, session = aSession()) => {
  const calls = { admitted: 0, entered: 0, released: 0, confirmed: 0 };
  const deps: RevealDeps = {
    store: faults.around(stack.store),
    findSession: async () => session,
    trackerRefusal: async () => null,
    isErased: async () => false,
    admitRate: () => {
      calls.admitted += 1;
      return true;
    },
    useSavedResult: async () => RESULT,
    reserveQueue: async () => {
      calls.entered += 1;
      return {
        release: () => {
          calls.released += 1;
        },
        confirm: () => {
          calls.confirmed += 1;
        },
      };
    },
    ...over,
  };
  const reveal = createRevealSession(deps);
  return { calls, deps, session, reveal: (request: RevealRequest) => reveal(request, stack.context()) };
};
const aSession = (over: Partial<RevealableSession> = {}): RevealableSession => ({
  session_id: randomUUID(),
  tracker_id: randomUUID(),
  partner_id: randomUUID(),
  expires_at: isoTime(stack.clock.now() + DAY),
  publicIp: '8.8.8.8',
  ...over,
});
const requestOf = ({ partner_id, session_id }: RevealableSession): RevealRequest => ({
  partnerId: partner_id,
  sessionId: session_id,
  idempotencyKey: randomUUID(),
});
/** The stored events of a partner's reveals, in order. */
const storedTypes = async ({ partner_id }: RevealableSession): Promise<string[]> => {
  const rows = await stack.rows(
    `select type from eventlog.event
     where starts_with(stream, $1) and data->>'partner_id' = $2 order by position`,
    [REVEAL_PREFIX, partner_id],
  );
  return rows.map(({ type }) => String(type));
};
const BOTH = ['reveals.RevealRequested.v1', 'reveals.RevealCompleted.v1'];
const pendingOf = async ({ deps, session }: ReturnType<typeof aProcess>, request: RevealRequest) => {
  const pending = await createRevealSession({ ...deps, useSavedResult: async () => null })(
    request,
    stack.context(),
  );
  expect(pending).toMatchObject({ ok: true, value: { completed: null } });
  expect(await storedTypes(session)).toEqual(['reveals.RevealRequested.v1']);
};

describe('a reveal request', () => {
  it('with a saved result requests and completes the reveal in one append and confirms its queue slot', async () => {
    const process = aProcess();
    const made = await process.reveal(requestOf(process.session));
    expect(made).toMatchObject({ ok: true, value: { completed: { billable: true } } });
    expect(await storedTypes(process.session)).toEqual(BOTH);
    expect(process.calls).toEqual({ admitted: 1, entered: 1, released: 0, confirmed: 1 });
  });

  it.each([
    ['key', { keyId: 'key_a' }, { key_id: 'key_a', user_id: null }],
    ['user', { userId: 'a-user' }, { key_id: null, user_id: 'a-user' }],
  ])('records the %s that made it', async (_kind, caller, recorded) => {
    const { deps, session } = aProcess();
    const made = await createRevealSession(deps)(requestOf(session), { ...stack.context(), ...caller });
    expect(made).toMatchObject({ value: recorded });
  });

  it('that is repeated in another process appends nothing and spends neither rate nor queue', async () => {
    const first = aProcess();
    const request = requestOf(first.session);
    const made = await first.reveal(request);
    const second = aProcess({}, first.session);
    expect(await second.reveal(request)).toEqual(made);
    expect(await storedTypes(first.session)).toEqual(BOTH);
    expect(second.calls).toEqual({ admitted: 0, entered: 0, released: 0, confirmed: 0 });
  });

  it('makes one reveal when two processes handle a hundred copies at once', async () => {
    const processes = [aProcess()];
    const [{ session }] = processes as [ReturnType<typeof aProcess>];
    processes.push(aProcess({}, session));
    const request = requestOf(session);
    const made = await Promise.all(Array.from({ length: 100 }, (_, n) => processes[n % 2]?.reveal(request)));
    expect(new Set(made.map((one) => one?.ok && one.value.reveal_id)).size).toBe(1);
    expect(await storedTypes(session)).toEqual(BOTH);
    for (const { calls } of processes) expect(calls.admitted).toBeLessThanOrEqual(1);
  });

  it('completes the pending reveal of a process that was killed before the result arrived', async () => {
    const process = aProcess();
    const request = requestOf(process.session);
    await pendingOf(process, request);
    const before = process.calls.admitted;
    expect(await process.reveal(request)).toMatchObject({ ok: true, value: { completed: {} } });
    expect(await storedTypes(process.session)).toEqual(BOTH);
    expect(process.calls.admitted).toBe(before);
  });

  it('for an address that is not public completes with an empty result and asks for none', async () => {
    const process = aProcess(
      { useSavedResult: () => Promise.reject(new Error('no lookup is needed')) },
      aSession({ publicIp: null }),
    );
    expect(await process.reveal(requestOf(process.session))).toMatchObject({
      ok: true,
      value: { completed: { billable: false } },
    });
  });
});

describe('a refused reveal request', () => {
  it.each([
    ['session_not_found', { findSession: async () => 'session_not_found' as const }],
    ['session_expired', { findSession: async () => 'session_expired' as const }],
    ['tracker_disabled', { trackerRefusal: async () => 'tracker_disabled' as const }],
    ['tracker_deleted', { trackerRefusal: async () => 'tracker_deleted' as const }],
    ['tracking_capacity', { admitRate: () => false }],
    ['tracking_unavailable', { reserveQueue: async () => null }],
  ])('as %s appends nothing', async (refusal, over) => {
    const process = aProcess(over);
    expect(await process.reveal(requestOf(process.session))).toEqual({ ok: false, refusal });
    expect(await storedTypes(process.session)).toEqual([]);
    expect(process.calls.confirmed).toBe(0);
  });

  it('by its tracker spends no rate', async () => {
    const process = aProcess({ trackerRefusal: async () => 'tracker_deleted' });
    await process.reveal(requestOf(process.session));
    expect(process.calls.admitted).toBe(0);
  });

  it('for another session of the same Idempotency-Key is idempotency_conflict', async () => {
    const first = aProcess();
    const request = requestOf(first.session);
    await first.reveal(request);
    const other = aProcess({}, aSession({ partner_id: first.session.partner_id }));
    expect(await other.reveal({ ...request, sessionId: other.session.session_id })).toEqual({
      ok: false,
      refusal: 'idempotency_conflict',
    });
  });

  it('for a key whose reveal has expired is reveal_expired, before and after the stream is deleted', async () => {
    const old = aProcess();
    const request = requestOf(old.session);
    const made = await old.reveal(request);
    const right = stack.clock.now();
    stack.clock.advance(2 * DAY);
    const next = aProcess({}, aSession({ partner_id: old.session.partner_id }));
    const again = { ...request, sessionId: next.session.session_id };
    expect(await next.reveal(again)).toEqual({ ok: false, refusal: 'reveal_expired' });
    const id = made.ok ? made.value.reveal_id : '';
    await stack.store.expire(`${REVEAL_PREFIX}${id}`, 1);
    expect(await next.reveal(again)).toEqual({ ok: false, refusal: 'reveal_expired' });
    stack.clock.set(right);
  });
});

it('a key whose reveal was erased with its session is reveal_expired', async () => {
  const { session, reveal } = aProcess();
  const request = requestOf(session);
  const made = await reveal(request);
  await stack.store.expire(`${REVEAL_PREFIX}${made.ok ? made.value.reveal_id : ''}`, 1);
  const gone = { findSession: async () => 'session_expired' as const };
  const expired = { ok: false, refusal: 'session_expired' };
  expect(await aProcess(gone, session).reveal(request)).toEqual(expired);
  const erased = aProcess({ ...gone, isErased: async () => true }, session);
  expect(await erased.reveal(request)).toEqual({ ok: false, refusal: 'reveal_expired' });
});

describe('a reveal whose append fails', () => {
  it('keeps its queue slot when the outcome is unknown, and the repeat finds or makes the reveal', async () => {
    const process = aProcess();
    const request = requestOf(process.session);
    faults.failAppends(REVEAL_PREFIX, () => new OutcomeUnknown('no answer'));
    await expect(process.reveal(request)).rejects.toBeInstanceOf(OutcomeUnknown);
    expect(process.calls).toMatchObject({ released: 0, confirmed: 0 });
    faults.heal();
    expect((await process.reveal(request)).ok).toBe(true);
    expect(await storedTypes(process.session)).toEqual(BOTH);
  });

  it('gives its queue slot back when nothing was appended', async () => {
    const process = aProcess();
    faults.failAppends(REVEAL_PREFIX, () => new StoreUnavailable('away'));
    await expect(process.reveal(requestOf(process.session))).rejects.toBeInstanceOf(StoreUnavailable);
    faults.heal();
    expect(process.calls).toMatchObject({ released: 1, confirmed: 0 });
    expect(await storedTypes(process.session)).toEqual([]);
  });
});

describe('the completion of a pending reveal', () => {
  const pending = async () => {
    const process = aProcess();
    const request = requestOf(process.session);
    await pendingOf(process, request);
    const [{ stream } = { stream: '' }] = await stack.rows(
      `select stream from eventlog.event where data->>'session_id' = $1`,
      [process.session.session_id],
    );
    return { ...process, revealId: String(stream).slice(REVEAL_PREFIX.length) };
  };

  it('happens once when the enrichment is delivered twice, also at the same time', async () => {
    const { deps, revealId, session } = await pending();
    const complete = () => completeReveal(deps, revealId, stack.context());
    for (const done of await Promise.all([complete(), complete()])) expect(done?.completed).toBeTruthy();
    expect((await complete())?.completed).toBeTruthy();
    expect(await storedTypes(session)).toEqual(BOTH);
  });

  it('waits for the result and for room in the queue', async () => {
    const { deps, revealId, session } = await pending();
    for (const over of [{ useSavedResult: async () => null }, { reserveQueue: async () => null }]) {
      const left = await completeReveal({ ...deps, ...over }, revealId, stack.context());
      expect(left).toMatchObject({ completed: null });
    }
    expect(await storedTypes(session)).toEqual(['reveals.RevealRequested.v1']);
  });
});
