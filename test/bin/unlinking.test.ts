import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONSUMERS } from '../../bin/groups.ts';
import { snapshotOldEnrichments, sweepToEnd } from '../../bin/retention.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { sweepClaims } from '../../processors/claims.ts';
import { closeTrackerDays } from '../../processors/usage/close-usage-streams.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { findJoins } from '../support/joins.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { describeOnStores } from '../support/stores.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

/** In an order that is neither the addresses' nor its reverse. */
const ADDRESSES = ['5.9.0.2', '5.9.0.3', '5.9.0.1'];

describeOnStores('unlinking', (env) => {
  const clock = manualClock();
  const provider = scriptedProvider();
  let api: TestApi;
  let key: Key;
  const visits: { session: string; reveal: string; ip: string }[] = [];

  const visitAndReveal = async (tracker: string, ip: string): Promise<void> => {
    provider.says(ip, aCompany(`Company ${ADDRESSES.indexOf(ip)}`));
    await collect(api, tracker, { ip });
    const session = String((await feed(api, key)).sessions.at(-1)?.session_id);
    const headers = { 'idempotency-key': randomUUID() };
    const url = `/v1/sessions/${session}/reveal`;
    const reveal = (await api.inject(key, { method: 'POST', url, headers })).json().reveal_id;
    const receipt = () => api.inject(key, { method: 'GET', url: `/v1/reveals/${reveal}` });
    await eventually(`the reveal of ${ip} is complete`, async () => (await receipt()).statusCode === 200);
    visits.push({ session, reveal, ip });
  };

  /** All joins from a visit to its address. */
  const joins = async () => {
    await api.caughtUp();
    const { digest } = api.runtime;
    return findJoins(
      api.sql,
      visits.map(({ session, reveal }) => [session, reveal]),
      visits.map(({ ip }) => [ip, digest(ip)]),
    );
  };
  const processed = async () => {
    const { store, processed } = api.runtime;
    await api.caughtUp();
    expect(await processed.reached(CONSUMERS.processors, await store.head(), 10_000)).toBe(true);
  };
  const snapshot = async () => {
    await processed();
    const run = { signal: new AbortController().signal, forMs: 60_000, onBlocked: () => undefined };
    // Consumers save checkpoints periodically, and an event stays until all checkpoints are past it.
    await until('all are snapshots', async () => {
      await snapshotOldEnrichments(api.runtime, run);
      await api.caughtUp();
      const left = await api.sql.query('select from read.saved_lookup where not snapshotted');
      return left.rowCount === 0 ? true : null;
    });
    await sweepClaims(api.runtime.pool, clock.now());
    await api.caughtUp();
  };
  const lookups = async () => {
    await api.caughtUp();
    const answers = await Promise.all(visits.map(({ ip }) => api.get(key, ip)));
    return answers.map((answer) => ({ ...answer.json(), request_id: undefined }));
  };
  const audit = async () =>
    (await auditBilling(api.runtime, { partnerId: key.partner_id, patienceMs: 10_000 })).report;

  beforeAll(async () => {
    api = await startApi({ clock, providers: [provider], env });
    key = await api.key();
    const tracker = await makeTracker(api, key);
    for (const ip of ADDRESSES) {
      await visitAndReveal(tracker, ip);
      clock.advance(7 * MINUTE);
    }
  });
  afterAll(() => api.close());

  const sweptAll = async () => {
    await closeTrackerDays({ ...api.runtime, waitForHead: async () => true });
    await until('sessions and receipts are gone', async () => {
      await sweepToEnd(api.runtime);
      await api.caughtUp();
      const left = 'select session_id from read.session union all select reveal_id from read.reveal';
      return (await api.sql.query(left)).rowCount === 0;
    });
  };

  describe('a revealed visit', () => {
    it('can be joined to its address by times and positions on the same day', async () => {
      await processed();
      const found = await joins();
      // Another store's log is in no table.
      if (env.EVENTSTORE_URL === undefined)
        expect(found).toContain(
          'position eventlog.event.data.position before position eventlog.event.position',
        );
      expect(found).toContain('time read.reveal_unit.completed_at equal time read.saved_lookup.enriched_at');
    });

    it('cannot be joined to its address in any table after its session has expired', async () => {
      clock.set(NOON + 31 * DAY);
      await api.caughtUp();
      await sweptAll();
      await snapshot();
      expect(await joins()).toEqual([]);
      const { store, digest } = api.runtime;
      for (const { ip } of visits) {
        const events = await Array.fromAsync(store.readStream(`enrichment-${digest(ip)}`));
        expect(events.map(({ type }) => type)).toEqual(['lookup.EnrichmentSnapshotted.v1']);
      }
    });

    it('leaves the saved result, its unit and a correct ledger behind, also after a rebuild', async () => {
      const [before, report] = [await lookups(), await audit()];
      expect(before).toMatchObject(
        visits.map(({ ip }) => ({
          ip,
          company: { name: `Company ${ADDRESSES.indexOf(ip)}` },
          enriched_at: new Date(NOON).toISOString().replace(/T.*/, 'T00:00:00.000Z'),
        })),
      );
      expect(report).toMatchObject({ units: 3, differences: [] });
      const { store, databaseUrl: url } = api.runtime;
      await rebuild({ store, url, projections: allProjections });
      expect(await lookups()).toEqual(before);
      expect(await audit()).toEqual(report);
      expect(await joins()).toEqual([]);
    });
  });
});
