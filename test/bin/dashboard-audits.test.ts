import { expect, it } from 'vitest';
import { dashboardBilling } from '../../bin/dashboard-reads.ts';
import { manualClock, startApi } from '../support/api.ts';
import { until } from '../support/until.ts';

it('of the audits of two processes the later one’s verdict stands, whichever ends first', async () => {
  const clock = manualClock();
  const api = await startApi({ clock });
  const { partner_id } = await api.key();
  const { foundation } = api;
  const gate = Promise.withResolvers<never>();
  const stuck = { ...foundation.store, head: () => gate.promise };
  const ready = async () => true;
  const slow = dashboardBilling({ ...foundation, store: stuck }, ready);
  const quick = dashboardBilling(foundation, ready);
  const first = slow.audit(partner_id);
  await until('it has begun', () => quick.verdict(partner_id));
  clock.advance(1_000);
  await quick.audit(partner_id);
  const verdict = await until('the second has ended', async () => {
    const told = await quick.verdict(partner_id);
    return told?.report ? told : null;
  });
  gate.reject(new Error('the store is away'));
  await first;
  await slow.close();
  expect(await quick.verdict(partner_id)).toEqual(verdict);
  await quick.close();
  await api.close();
});
