import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { billingStream } from '../../domain/billing/events.ts';
import { digestOf } from '../../domain/billing/ledger.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { createDailyAnchors } from '../../processors/billing/daily-anchors.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { complete, completedReveal } from '../support/reveals.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock });
});
beforeEach(async () => {
  key = await api.key();
});
afterAll(() => api.close());

const read = (query = '', by: Key = key) => api.inject(by, { method: 'GET', url: `/v1/ledger${query}` });
const entry = (completed_at: string, hasData = true) =>
  complete(api.runtime.store, completedReveal({ partner_id: key.partner_id, completed_at }, hasData));

describe('GET /v1/ledger', () => {
  it('is empty for the current month where nothing has completed', async () => {
    const answer = await read();
    expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store']);
    expect(answer.json()).toEqual({
      month: '2026-03',
      entries: [],
      totals: { entries: 0, units: 0 },
      head: null,
      anchor: null,
      next_cursor: expect.any(String),
      has_more: false,
      request_id: answer.headers['x-request-id'],
    });
  });

  it('has every entry of the month at once, page by page, with all that its digest covers', async () => {
    await entry('2026-02-28T23:59:59.999Z');
    await entry('2026-03-01T00:00:00.000Z', false);
    await entry('2026-03-02T10:00:00.000Z');
    await entry('2026-03-03T10:00:00.000Z');
    const first = (await read('?month=2026-03&limit=2')).json();
    const rest = (await read(`?month=2026-03&limit=2&cursor=${first.next_cursor}`)).json();
    const february = (await read('?month=2026-02')).json();
    const entries = [...february.entries, ...first.entries, ...rest.entries];
    expect(entries.map(({ number, units }) => [number, units])).toEqual([
      [0, 1],
      [1, 0],
      [2, 1],
      [3, 1],
    ]);
    expect(entries.map(({ completed_at }) => completed_at.slice(0, 10))).toEqual([
      '2026-02-28',
      '2026-03-01',
      '2026-03-02',
      '2026-03-03',
    ]);
    for (const [at, one] of entries.entries()) {
      const { number, digest, ...covered } = one;
      expect(digestOf(number, covered)).toBe(digest);
      expect(one.previous).toBe(entries[at - 1]?.digest ?? '0'.repeat(64));
    }
    expect([first.has_more, rest.has_more]).toEqual([true, false]);
    expect(first.totals).toEqual({ entries: 3, units: 2 });
    expect(february.totals).toEqual({ entries: 1, units: 1 });
    expect(february.head).toEqual({ number: 3, digest: entries[3].digest });

    await entry('2026-03-14T10:00:00.000Z');
    const later = (await read(`?cursor=${rest.next_cursor}`)).json();
    expect(later.entries.map(({ number }: { number: number }) => number)).toEqual([4]);
    expect((await read(`?cursor=${later.next_cursor}`)).json().entries).toEqual([]);
  });

  it('shows a partner nothing of another', async () => {
    await entry('2026-03-01T00:00:00.000Z');
    const stranger = await api.key();
    expect((await read('', stranger)).json()).toMatchObject({ entries: [], head: null });
    const { next_cursor } = (await read()).json();
    expect((await read(`?cursor=${next_cursor}`, stranger)).json().error.code).toBe('invalid_cursor');
  });

  it('refuses what is no month, no limit, no cursor, or no parameter of it', async () => {
    const { next_cursor } = (await read('?month=2026-02')).json();
    const refused: [string, string][] = [
      ['?month=2026-13', 'invalid_range'],
      ['?month=0000-01', 'invalid_range'],
      ['?month=2026-3', 'invalid_range'],
      ['?month=', 'invalid_range'],
      ['?month=2026-03&month=2026-03', 'invalid_range'],
      ['?limit=0', 'invalid_range'],
      ['?limit=501', 'invalid_range'],
      ['?from=2026-03-01', 'invalid_range'],
      ['?cursor=x', 'invalid_cursor'],
      [`?month=2026-03&cursor=${next_cursor}`, 'invalid_cursor'],
    ];
    for (const [query, code] of refused) {
      const answer = await read(query);
      expect([query, answer.statusCode, answer.json().error.code]).toEqual([query, 400, code]);
    }
    expect((await read('?month=9999-12&limit=500')).statusCode).toBe(200);
    expect((await api.inject(null, { method: 'GET', url: '/v1/ledger' })).statusCode).toBe(401);
  });

  it('leaves out what is no entry, so that the next number shows the gap', async () => {
    await entry('2026-03-01T00:00:00.000Z');
    await entry('2026-03-02T00:00:00.000Z');
    await read();
    await api.sql.query('delete from eventlog.event where stream = $1 and revision = 0', [
      billingStream(key.partner_id),
    ]);
    const { entries, totals } = (await read()).json();
    expect(entries.map(({ number }: { number: number }) => number)).toEqual([1]);
    expect(totals.entries).toBe(2);
    await api.sql.query(`update eventlog.event set data = '{"units":1}' where stream = $1 and revision = 1`, [
      billingStream(key.partner_id),
    ]);
    expect((await read()).json()).toMatchObject({ entries: [], head: null, totals: { entries: 0 } });
  });
});

describe('the daily anchor', () => {
  it('is kept once a UTC day by several processes, and shown with the ledger', async () => {
    await entry('2026-03-14T10:00:00.000Z');
    const { head } = (await read()).json();
    const [one, other] = [createDailyAnchors(api.runtime), createDailyAnchors(api.runtime)];
    await one();
    await other();
    const { anchor } = (await read()).json();
    expect(anchor).toMatchObject({
      partner_id: key.partner_id,
      entries: 1,
      units: 1,
      head_digest: head.digest,
    });
    expect(anchor.made_at.slice(0, 10)).toBe('2026-03-14');

    clock.advance(DAY);
    await entry('2026-03-15T10:00:00.000Z');
    await read();
    await other();
    await one();
    const next = (await read()).json();
    expect(next.anchor).toMatchObject({ entries: 2, units: 2, head_digest: next.head.digest });
    expect(next.anchor.public_key).toBe(anchor.public_key);
    const kept = await Array.fromAsync(api.runtime.store.readStream(`anchors-${key.partner_id}`));
    expect(kept).toHaveLength(2);
  });
});
