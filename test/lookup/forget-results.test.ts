/** Saved results through the API, on a clock that moves by years. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forgetOldResults, snapshotOldEnrichments } from '../../bin/retention.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { enrichmentStream } from '../../domain/lookup/events.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { consumersCaughtUp } from '../support/consumers-caught-up.ts';
import { isExpired } from '../support/is-expired.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

describe('a saved result', () => {
  const clock = manualClock();
  const provider = scriptedProvider();
  let api: TestApi;
  let key: Key;
  const forever = { ...aCompany('Acme'), fresh_for_days: 10_000 };
  beforeAll(async () => {
    api = await startApi({ clock, providers: [provider] });
    key = await api.key();
  });
  afterAll(() => api.close());

  const forget = async () => {
    for (const _ of ['what is due', 'its streams']) {
      await consumersCaughtUp(api);
      await forgetOldResults(api.runtime, new AbortController().signal);
    }
    await api.caughtUp();
  };
  const rebuildAll = async () => {
    const { store, databaseUrl: url } = api.runtime;
    await rebuild({ store, url, projections: allProjections });
    await api.caughtUp();
  };
  const noted = async (ip: string) => {
    const day = new Date(clock.now()).toISOString().slice(0, 10);
    await until('the use is stored', async () => {
      await api.runtime.lookupUses.flush();
      const { rows } = await api.sql.query('select from work.lookup_use where ip = $1 and asked_on = $2', [
        ip,
        day,
      ]);
      return rows.length === 1;
    });
  };
  const status = async (ip: string) => {
    const { statusCode, body } = await api.get(key, ip);
    return statusCode === 200 ? 200 : JSON.parse(body).error.code;
  };
  const enrich = async (ip: string) => {
    expect((await api.post(key, ip)).statusCode).toBe(202);
    await api.settled(key, ip);
    await noted(ip);
  };
  const generation = (ip: string, nth: number) => {
    const { store, digest } = api.runtime;
    const stream = enrichmentStream(digest(ip), nth);
    return {
      stream,
      isExpired: () => isExpired(store, stream),
      events: () => Array.fromAsync(store.readStream(stream)),
    };
  };

  it('stays readable for 400 days after its last request and is not_requested afterwards', async () => {
    const ip = '8.8.1.1';
    provider.says(ip, forever);
    await enrich(ip);
    clock.advance(399 * DAY);
    expect(await status(ip)).toBe(200);
    await noted(ip);
    clock.advance(399 * DAY);
    await forget();
    expect(await status(ip)).toBe(200);
    await noted(ip);
    clock.advance(400 * DAY);
    // Depends on the clock, not on the sweep.
    expect(await status(ip)).toBe('not_requested');
    await forget();
    expect(await status(ip)).toBe('not_requested');
    expect(await generation(ip, 0).isExpired()).toBe(true);
    const { rows } = await api.sql.query(
      `select ip from read.saved_lookup where ip = $1 union all select ip from read.company_profile where ip = $1
       union all select ip from work.lookup_use where ip = $1 union all select stream from read.forgotten_lookup`,
      [ip],
    );
    expect(rows).toEqual([]);
  });

  it('is looked up again in the next generation of its stream, by any partner, once it is forgotten', async () => {
    const ip = '8.8.1.2';
    provider.says(ip, forever);
    await enrich(ip);
    for (const nth of [0, 1]) {
      clock.advance(401 * DAY);
      await forget();
      expect(await generation(ip, nth).isExpired()).toBe(true);
      expect(await status(ip)).toBe('not_requested');
      provider.says(ip, { ...aCompany(`Acme ${nth}`), fresh_for_days: 10_000 });
      await enrich(ip);
      expect((await api.get(key, ip)).json().company.name).toBe(`Acme ${nth}`);
    }
    const other = await api.key();
    expect((await api.post(other, ip)).statusCode).toBe(200);
    expect((await generation(ip, 2).events()).map(({ type }) => type)).toContain(
      'lookup.EnrichmentCompleted.v1',
    );
    await rebuildAll();
    expect((await api.get(other, ip)).json().company.name).toBe('Acme 1');
  });

  it('is kept when only a reveal uses it', async () => {
    const ip = '8.8.1.3';
    provider.says(ip, forever);
    await enrich(ip);
    const tracker = await makeTracker(api, key);
    const reveal = async () => {
      await collect(api, tracker, { ip });
      const session = (await feed(api, key)).sessions.at(-1)?.session_id;
      const headers = { 'idempotency-key': randomUUID() };
      return api.inject(key, { method: 'POST', url: `/v1/sessions/${session}/reveal`, headers });
    };
    clock.advance(399 * DAY);
    expect((await reveal()).statusCode).toBe(200);
    await noted(ip);
    clock.advance(2 * DAY);
    await forget();
    expect(await status(ip)).toBe(200);
    // A use that is still waiting would count as one of the day to come.
    await noted(ip);
    clock.advance(401 * DAY);
    await forget();
    expect((await reveal()).statusCode).toBe(202);
    await until('its result is there again', async () => {
      const { rows } = await api.sql.query('select from read.saved_lookup where ip = $1', [ip]);
      return rows.length === 1;
    });
  });

  it('holds one event in its stream on the next day after many refreshes, whether they succeed or fail', async () => {
    const ip = '8.8.1.4';
    provider.says(ip, { ...aCompany('Acme'), fresh_for_days: 1 });
    await enrich(ip);
    const refresh = async () => {
      clock.advance(2 * DAY);
      const before = (await generation(ip, 0).events()).at(-1)?.revision ?? 0;
      await api.post(key, ip);
      await until('the round has ended', async () => {
        clock.advance(MINUTE);
        const last = (await generation(ip, 0).events()).at(-1);
        return (last?.revision ?? 0) > before && /Completed|GaveUp/.test(last?.type ?? '');
      });
      await consumersCaughtUp(api);
      clock.advance(DAY);
      await snapshotOldEnrichments(api.runtime, {
        signal: new AbortController().signal,
        forMs: 10_000,
        onBlocked: () => undefined,
      });
      await api.caughtUp();
    };
    for (let round = 0; round < 4; round += 1) await refresh();
    expect(await generation(ip, 0).events()).toHaveLength(1);
    provider.says(ip, 'fails');
    for (let round = 0; round < 4; round += 1) await refresh();
    expect(await generation(ip, 0).events()).toHaveLength(1);
    const before = (await api.get(key, ip)).json();
    expect(before).toMatchObject({ company: { name: 'Acme' }, refresh_status: 'deferred' });
    await rebuildAll();
    const { request_id: _, ...after } = (await api.get(key, ip)).json();
    expect(before).toMatchObject(after);
  });
});
