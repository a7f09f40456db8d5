import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import { companySchema, networkSchema, type SavedResult } from '../../domain/lookup/result.ts';
import { type Clue, type SignalEvent, signalEvents, signalsStream } from '../../domain/signals/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { profiles } from '../../projections/signals/profiles.ts';
import { forgetSignalsOf, signals } from '../../projections/signals/signals.ts';
import { readProfiles } from '../../read-api/signals/clues.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
const PROJECTIONS = [signals, profiles];
beforeAll(async () => {
  stack = await startTestStack();
  stack.project(PROJECTIONS);
});
afterAll(() => stack.close());

const clue = (event_id: string, over: Partial<Clue> = {}): Clue => ({
  event_id,
  visitor: 'visitor',
  domain: 'domain',
  site: 'site',
  page_run: null,
  submitted: true,
  occurred_at: '2026-03-01T12:00:00.000Z',
  sealed: 'c2VhbGVk',
  ...over,
});
const observed = (day: string, clues: readonly Clue[], left_out: readonly string[] = []): SignalEvent => ({
  type: 'signals.SignalsObserved.v1',
  data: { day, clues: [...clues], left_out: [...left_out] },
});
const append = async (event: SignalEvent): Promise<string> => {
  const events = toNewEvents(signalEvents, [event], stack.context());
  await stack.store.append(signalsStream(event.data.day), 'any', events);
  return events[0]?.id ?? '';
};
const contents = async () => {
  await stack.caughtUp(PROJECTIONS);
  const tables = PROJECTIONS.flatMap(({ tables: of }) => of);
  return Object.fromEntries(
    await Promise.all(
      tables.map(async (table) => [
        table,
        await stack.rows(`select * from read.${table} t order by to_jsonb(t)::text`),
      ]),
    ),
  );
};
const kept = async () =>
  (await contents()).signal.map((row: Record<string, unknown>) => [row.event_id, row.batch]);
const log = async (stream: string): Promise<RecordedEvent[]> =>
  Array.fromAsync(stack.store.readStream(stream));

describe('signals', () => {
  it('count once: in a batch, in the next, in one of another day, and delivered twice', async () => {
    const first = await append(observed('2026-03-01', [clue('a'), clue('b')], ['left']));
    const second = await append(observed('2026-03-01', [clue('b', { domain: 'other' }), clue('c')], ['a']));
    await append(observed('2026-03-02', [clue('left'), clue('c')]));
    const once = [
      ['a', first],
      ['b', first],
      ['c', second],
      ['left', first],
    ];
    expect(await kept()).toEqual(once);
    const before = await contents();
    expect(before.signal_day).toMatchObject([{ last_revision: 1 }, { last_revision: 0 }]);
    expect(before.signal.at(-1)).toMatchObject({
      event_id: 'left',
      visitor: null,
      domain: null,
      sealed: null,
    });

    const client = await stack.pool.connect();
    await client.query('set search_path to read');
    const events = [...(await log('signals-2026-03-01')), ...(await log('signals-2026-03-02'))];
    await signals.apply(events, client);
    for (const event of events) await signals.apply([event], client);
    await client.query('reset search_path');
    client.release();
    expect(await contents()).toEqual(before);
  });

  it('are the same after a rebuild', async () => {
    await append(observed('2026-03-03', [clue('again'), clue('again'), clue('d', { page_run: 'run' })]));
    await saved('9.9.9.9', { name: 'Acme', website: 'https://acme.io' });
    const before = await contents();
    await rebuild({ store: stack.store, url: stack.url, projections: PROJECTIONS });
    expect(await contents()).toEqual(before);
  });

  it('of a day are deleted with it, and others are not', async () => {
    await append(observed('2026-01-01', [clue('old')]));
    await contents();
    await forgetSignalsOf(stack.pool, '2026-01-01');
    const left = await contents();
    expect(left.signal.map((row: Record<string, unknown>) => row.event_id)).not.toContain('old');
    expect(left.signal_day).toHaveLength(3);
    expect(left.signal.length).toBeGreaterThan(3);
  });
});

const saved = async (ip: string, company: Partial<SavedResult['company']> | null, at = stack.clock.now()) => {
  const result: SavedResult = {
    ip,
    match_type: 'company',
    network: networkSchema.parse({}),
    company: company && companySchema.parse(company),
    sources: [],
    enriched_at: isoTime(at),
    fresh_until: isoTime(at),
    needs_company_enrichment: false,
    answered_by: ['directory'],
  };
  const event = {
    type: 'lookup.EnrichmentCompleted.v1',
    data: { round: 1, attempt: 1, result, settles: [] },
  };
  await stack.store.append(
    `enrichment-${randomUUID()}`,
    'any',
    toNewEvents(enrichmentEvents, [event], stack.context()),
  );
  await stack.pool.query(
    `insert into read.saved_lookup values ($1, 'company', '{}', $2, '{}', $3, $3, false)
     on conflict (ip) do update set company = excluded.company`,
    [ip, result.company && JSON.stringify(result.company), result.enriched_at],
  );
  await stack.caughtUp(PROJECTIONS);
};

describe('profiles', () => {
  const match = async (...hosts: string[]) => Object.fromEntries(await readProfiles(stack.pool, hosts));
  beforeEach(() => stack.pool.query('truncate read.company_profile, read.saved_lookup'));

  it('are matched by the exact host name of the website, without www.', async () => {
    await saved('9.0.0.1', { name: 'Acme', website: 'https://www.Acme.io/about' });
    expect(await match('acme.io', 'www.acme.io', 'mail.acme.io', 'io')).toMatchObject({
      'acme.io': { name: 'Acme', employees: null },
    });
    expect(Object.keys(await match('acme.io', 'www.acme.io', 'mail.acme.io', 'io'))).toEqual(['acme.io']);
  });

  it('of one company are one for all its addresses and take the newest result', async () => {
    const at = stack.clock.now();
    await saved('9.0.1.1', { name: 'Acme', website: 'acme.io', city: 'Old' }, at);
    await saved('9.0.1.3', { name: 'ACME ', website: 'http://acme.io', city: 'New' }, at + 2_000);
    await saved('9.0.1.2', { name: 'acme', website: 'acme.io', city: 'Middle' }, at + 1_000);
    await saved('9.0.1.4', { website: 'acme.io', city: 'Nameless' }, at + 3_000);
    expect(await match('acme.io')).toMatchObject({ 'acme.io': { city: 'New' } });
  });

  it('are separate for companies that share a website and merge when that ends', async () => {
    await saved('9.0.2.1', { name: 'Acme', website: 'acme.io' });
    await saved('9.0.2.2', { name: 'Acme Holding', website: 'acme.io' });
    expect(await match('acme.io')).toEqual({ 'acme.io': 'several' });
    await saved('9.0.2.2', { name: 'Acme Holding', website: 'holding.io' });
    expect(await match('acme.io', 'holding.io')).toMatchObject({
      'acme.io': { name: 'Acme' },
      'holding.io': { name: 'Acme Holding' },
    });
    await saved('9.0.2.2', null);
    await saved('9.0.2.1', { name: 'Acme', website: null });
    expect(await match('acme.io', 'holding.io')).toEqual({});
  });

  it('without a website are matched by name', async () => {
    await saved('9.0.3.1', { website: 'acme.io', city: 'Somewhere' });
    expect(await match('acme.io')).toMatchObject({ 'acme.io': { name: null, city: 'Somewhere' } });
  });
});
