import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Runtime } from '../../bin/runtime.ts';
import { toNewEvents } from '../../commands/handle.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { revealExpiryEvents } from '../../domain/reveals/events.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { EventStore, RecordedEvent } from '../../event-store/port.ts';
import { createRequestedAudits } from '../../processors/billing/requested-audits.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { mostBetweenTurns } from '../support/between-turns.ts';
import { until } from '../support/until.ts';

const MINUTE = 60_000;

let api: TestApi;
const clock = manualClock();
beforeAll(async () => {
  api = await startApi({ clock });
});
afterAll(() => api.close());

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});
const auditsOf = (runtime: Runtime) => {
  const audits = createRequestedAudits(runtime);
  closing.push(audits.close);
  return audits;
};

/** A store whose head is withheld until `open`, and how often it was requested. */
const heldUp = () => {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const head = async () => {
    asked += 1;
    await gate.promise;
    return api.runtime.store.head();
  };
  const runtime = { ...api.runtime, store: { ...api.runtime.store, head } };
  return { runtime, open: gate.resolve, asked: () => asked };
};

it("of two concurrent audits in two processes the later one's result is kept, whichever ends first", async () => {
  const { partner_id } = await api.key();
  const gate = Promise.withResolvers<never>();
  const stuck = { ...api.runtime.store, head: () => gate.promise };
  const slow = auditsOf({ ...api.runtime, store: stuck });
  const quick = auditsOf(api.runtime);
  const first = slow.audit(partner_id);
  await until('it has begun', () => quick.verdict(partner_id));
  clock.advance(10 * MINUTE);
  expect(await quick.audit(partner_id)).toBe('begun');
  const verdict = await until('the second has ended', async () => {
    const found = await quick.verdict(partner_id);
    return found?.report ? found : null;
  });
  gate.reject(new Error('the store is away'));
  await first;
  expect(await quick.verdict(partner_id)).toEqual(verdict);
});

it('an audit reads a long ledger with pauses', async () => {
  const { partner_id } = await api.key();
  let read = 0;
  const readStream: EventStore['readStream'] = async function* (stream) {
    if (stream !== billingStream(partner_id)) return;
    for (let revision = 0; revision < 1_000; revision += 1) {
      read += 1;
      yield { revision, position: 0n, type: 'unknown', data: {} } as RecordedEvent;
    }
  };
  const audits = auditsOf({ ...api.runtime, store: { ...api.runtime.store, readStream } });
  const most = mostBetweenTurns(() => read);
  await audits.audit(partner_id);
  await until('it has ended', async () => (await audits.verdict(partner_id))?.ended_at);
  expect(read).toBe(1_000);
  expect(most()).toBeLessThanOrEqual(100);
});

it('audits of different partners run one after the other', async () => {
  const partners = [(await api.key()).partner_id, (await api.key()).partner_id];
  const { runtime, open, asked } = heldUp();
  const audits = auditsOf(runtime);
  const under = partners.map((partner) => audits.audit(partner));
  for (const partner of partners) await until('it has begun', () => audits.verdict(partner));
  await Promise.all(under);
  expect(asked()).toBe(1);
  open();
  for (const partner of partners) {
    await until('it has ended', async () => (await audits.verdict(partner))?.ended_at);
  }
  expect(asked()).toBeGreaterThan(1);
});

it("a partner's next audit starts after ten minutes, or ten times the last audit's duration, at the earliest", async () => {
  const { partner_id } = await api.key();
  const { runtime, open } = heldUp();
  const audits = auditsOf(runtime);
  const first = audits.audit(partner_id);
  await until('it has begun', () => audits.verdict(partner_id));
  clock.advance(5 * MINUTE);
  open();
  await first;
  await until('it has ended', async () => (await audits.verdict(partner_id))?.ended_at);
  clock.advance(10 * MINUTE);
  expect(await audits.audit(partner_id)).toBe('recent');
  clock.advance(40 * MINUTE);
  expect(await audits.audit(partner_id)).toBe('begun');
});

it('a ledger that would not fit into memory is not audited', async () => {
  const { partner_id } = await api.key();
  const audits = createRequestedAudits(api.runtime, 2);
  closing.push(audits.close);
  const add = (count: number) =>
    api.sql.query(
      `insert into read.reveal_unit (reveal_id, tracker_id, partner_id, completed_at, units, position)
       select gen_random_uuid(), gen_random_uuid(), $1, $2, 0, 0 from generate_series(1, $3)`,
      [partner_id, new Date(clock.now()), count],
    );
  await add(3);
  expect(await audits.audit(partner_id)).toBe('too-large');
  expect(await audits.verdict(partner_id)).toBeNull();
  await api.sql.query('delete from read.reveal_unit where partner_id = $1', [partner_id]);
  await add(2);
  expect(await audits.audit(partner_id)).toBe('begun');
});

it('an audit fails when the store has more reveals of the partner than may be held, such as expired ones', async () => {
  const { partner_id } = await api.key();
  const audits = createRequestedAudits(api.runtime, 2);
  closing.push(audits.close);
  const at = isoTime(clock.now());
  const expired = {
    type: 'reveals.RevealsExpired.v1',
    data: { partner_id, reveals: [1, 2, 3].map(() => [randomUUID(), at] as const) },
  };
  const context = { correlationId: randomUUID(), causationId: randomUUID(), at: clock.now() };
  await api.runtime.store.append(
    expiredStream(partner_id, at.slice(0, 10)),
    'no_stream',
    toNewEvents(revealExpiryEvents, [expired], context),
  );
  expect(await audits.audit(partner_id)).toBe('begun');
  const verdict = await until('it has ended', async () => {
    const last = await audits.verdict(partner_id);
    return last?.ended_at ? last : null;
  });
  expect(verdict.report).toBeNull();
});
