import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { partners } from '../../projections/partners/keys.ts';
import type { Projection } from '../../projections/projection.ts';
import { usage } from '../../projections/usage/lookup-counts.ts';
import { trackerUsage } from '../../projections/usage/tracker-usage.ts';
import {
  BERT,
  completed,
  failed,
  joined,
  made,
  requested,
  reservation,
  settled,
} from '../lookup/lookup-events.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  db = await stack.session('set search_path to read');
});
beforeEach(async () => {
  await db.query(`truncate ${[...lookups.tables, ...usage.tables, ...partners.tables].join(', ')}`);
});
afterAll(() => stack.close());

const metadata: EventMetadata = { $correlationId: 'c', $causationId: 'c', at: '2026-03-01T12:00:00.000Z' };
const recorded = (stream: string, events: readonly { type: string; data: object }[]): RecordedEvent[] =>
  events.map((event, revision) => ({
    ...event,
    id: randomUUID(),
    metadata,
    stream,
    revision,
    position: BigInt(revision) as Position,
  }));

const contents = async (tables: readonly string[]) => {
  const found: Record<string, unknown[]> = {};
  for (const table of tables) {
    found[table] = (await db.query(`select * from ${table} t order by to_jsonb(t)`)).rows;
  }
  return found;
};

/** Applies the events in one batch, then one by one, and expects the same rows. */
const applied = async (projection: Projection, events: readonly RecordedEvent[]) => {
  await projection.apply(events, db);
  const atOnce = await contents(projection.tables);
  await db.query(`truncate ${projection.tables.join(', ')}`);
  for (const event of events) await projection.apply([event], db);
  expect(await contents(projection.tables)).toEqual(atOnce);
  return atOnce;
};

describe('the read model of lookups', () => {
  it('follows a first enrichment with a second requester, a failure and a completion', async () => {
    const events = [
      ...recorded('intake-a', [made(1, '8.8.8.8')]),
      ...recorded('enrichment-x', [requested(), failed(1)]),
    ];
    expect(await applied(lookups, events)).toMatchObject({
      saved_lookup: [],
      enrichment_work: [{ ip: '8.8.8.8', attempts: 1, round: 1 }],
      reservation: [{ state: 'submitted' }],
    });
    await db.query('truncate saved_lookup, enrichment_work, reservation');
    const all = [
      ...events,
      ...recorded('enrichment-x', [
        joined(reservation(BERT)),
        completed({}, { attempt: 2, settles: [reservation(), reservation(BERT)] }),
      ]),
      ...recorded('intake-a', [settled(1)]),
    ];
    expect(await applied(lookups, all)).toMatchObject({
      saved_lookup: [{ ip: '8.8.8.8', match_type: 'company', needs_company_enrichment: false }],
      enrichment_work: [],
      reservation: [{ state: 'completed' }, { state: 'completed' }],
    });
  });

  it('follows a refresh that is given up', async () => {
    const gaveUp = {
      type: 'lookup.EnrichmentGaveUp.v1',
      data: {
        ip: '8.8.8.8',
        round: 2,
        attempt: 5,
        kind: 'completion',
        gave_up_at: '2026-03-02T12:00:00.000Z',
        failures: [],
        settles: [reservation(undefined, 2)],
      },
    };
    const rest = completed({ match_type: 'isp', needs_company_enrichment: true });
    const events = [
      ...recorded('intake-a', [made(1, '8.8.8.8')]),
      ...recorded('enrichment-x', [requested(), rest]),
      ...recorded('intake-a', [settled(1), made(2, '8.8.8.8')]),
      ...recorded('enrichment-x', [
        requested(2, 'completion', reservation(undefined, 2)),
        failed(1, 2),
        gaveUp,
      ]),
    ];
    expect(await applied(lookups, events)).toMatchObject({
      saved_lookup: [{ match_type: 'isp', needs_company_enrichment: false }],
      enrichment_work: [],
      reservation: [{ state: 'completed' }, { state: 'gave_up' }],
    });
  });

  it('takes from a snapshot what was truncated before it', async () => {
    const snapshot = {
      type: 'lookup.IntakeSnapshotted.v1',
      data: {
        day: '2026-03-01',
        used_today: {},
        keys: ['key_a'],
        open: [[reservation().reservation_id, '8.8.8.8', 0, Date.parse('2026-03-01T12:00:00.000Z')]],
      },
    };
    const stream = `intake-${reservation().partner_id}`;
    expect(await applied(lookups, recorded(stream, [snapshot]))).toMatchObject({
      reservation: [{ state: 'reserved', ip: '8.8.8.8', partner_id: reservation().partner_id }],
    });
    await db.query('truncate reservation');
    const known = [made(1, '8.8.8.8'), settled(1), snapshot];
    expect(await applied(lookups, recorded(stream, known))).toMatchObject({
      reservation: [{ state: 'settled' }],
    });
  });
});

describe('the read model of usage', () => {
  const counted = (...counts: unknown[]) => ({ type: 'usage.LookupsCounted.v1', data: { counts } });
  const totalled = (...counts: unknown[]) => ({
    type: 'usage.LookupsTotalled.v1',
    data: { part: 1, parts: 1, counts },
  });

  it('adds up counts, one stream at a time', async () => {
    const row = ['k', '2026-03-01T10', 'isp', 2, 1, 30];
    const events = [
      ...recorded('usage-a-2026-03-01', [counted(row), counted(row)]),
      ...recorded('usage-b-2026-03-01', [counted(row)]),
    ];
    expect(await applied(usage, events)).toMatchObject({
      usage_hour: [{ requests: '4', cache_hits: '2', duration_us: '60' }, { requests: '2' }],
      usage_source: [{ totalled: false }, { totalled: false }],
    });
  });

  it('subtracts corrections and removes the row of an hour that they empty', async () => {
    const corrected = (...counts: unknown[]) => ({ type: 'usage.LookupsCorrected.v1', data: { counts } });
    const isp = ['k', '2026-03-01T10', 'isp', 2, 1, 30];
    const error = ['k', '2026-03-01T10', 'error', 1, 0, 5];
    const late = [counted(isp, error), corrected(['k', '2026-03-01T10', 'isp', 1, 1, 10]), corrected(error)];
    expect(await applied(usage, recorded('usage-a-2026-03-01', late))).toMatchObject({
      usage_hour: [{ outcome: 'isp', requests: '1', cache_hits: '0', duration_us: '20' }],
      usage_source: [{ totalled: false }],
    });
  });

  it('subtracts corrections of calls about trackers in the same way', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    const events = [
      [
        'usage.TrackerCallsCounted.v1',
        [one, '2026-03-01T10', 3, 2, 1, 1],
        [other, '2026-03-01T10', 1, 0, 0, 0],
      ],
      [
        'usage.TrackerCallsCorrected.v1',
        [one, '2026-03-01T10', 1, 1, 1, 0],
        [other, '2026-03-01T10', 1, 0, 0, 0],
      ],
    ].map(([type, ...counts]) => ({ type: String(type), data: { counts } }));
    await db.query(`truncate ${trackerUsage.tables.join(', ')}`);
    const { tracker_calls_hour } = await applied(trackerUsage, recorded('usage-a-2026-03-01', events));
    expect(tracker_calls_hour).toMatchObject([
      {
        tracker_id: one,
        capture_requests: '2',
        api_requests: '1',
        completed_responses: '0',
        company_responses: '1',
      },
    ]);
  });

  it('shows the same from totals alone as from the counts that they replace', async () => {
    const row = ['k', '2026-03-01T10', 'isp', 2, 1, 30];
    const total = ['k', '2026-03-01T10', 'isp', 4, 2, 60];
    const whole = await applied(
      usage,
      recorded('usage-a-2026-03-01', [counted(row), counted(row), totalled(total)]),
    );
    await db.query('truncate usage_hour, usage_source');
    const alone = recorded('usage-a-2026-03-01', [totalled(total)]);
    const position = 2n as Position;
    expect(
      await applied(
        usage,
        alone.map((event) => ({ ...event, position })),
      ),
    ).toEqual(whole);
    expect(whole.usage_source).toMatchObject([{ totalled: true }]);
  });
});
