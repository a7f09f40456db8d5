import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Runtime } from '../../bin/runtime.ts';
import { ownContext } from '../../commands/handle.ts';
import { createRequestedAudits } from '../../processors/billing/requested-audits.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

const MINUTE = 60_000;
const USER = '2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e';

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
  const context = { ...ownContext(clock), userId: USER };
  return { ...audits, audit: (partnerId: string) => audits.audit(partnerId, { ...context, partnerId }) };
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

it('an audit that begins is activity of its user, one that is refused is none', async () => {
  const { partner_id } = await api.key();
  const audits = auditsOf(api.runtime);
  expect(await audits.audit(partner_id)).toBe('begun');
  expect(await audits.audit(partner_id)).toBe('recent');
  await api.caughtUp();
  const { rows } = await api.sql.query(
    `select actor_kind, actor_id from read.activity where partner_id = $1 and action = 'ledger.audited'`,
    [partner_id],
  );
  expect(rows).toEqual([{ actor_kind: 'user', actor_id: USER }]);
});
