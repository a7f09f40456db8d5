import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { record, scriptedProvider } from '../support/providers.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
const faults = faultyStore();
let api: TestApi;
let key: Key;
let tracker: string;
let address = 0;

beforeAll(async () => {
  api = await startApi({
    clock,
    providers: [provider],
    aroundStore: faults.around,
    env: { CAPTURES_PER_SECOND: '100000', CAPTURES_PER_SECOND_PER_TRACKER: '100000' },
  });
  key = await api.key();
  tracker = await makeTracker(api, key);
});
afterAll(() => api.close());
beforeEach(() => {
  faults.heal();
  // Past the second that reveals are counted in.
  clock.advance(1_100);
});

/** A session from an address without earlier visits. */
const visit = async (of = tracker, by = key) => {
  address += 1;
  const ip = `5.9.${address >> 8}.${address & 255}`;
  await collect(api, of, { ip, body: { custom: { n: address } } });
  const { sessions } = await feed(api, by, `tracker_id=${of}&limit=100`);
  return { ip, id: sessions.at(-1)?.session_id as string };
};
const reveal = (session: string, idempotencyKey: string = randomUUID(), by = key) =>
  api.inject(by, {
    method: 'POST',
    url: `/v1/sessions/${session}/reveal`,
    headers: { 'idempotency-key': idempotencyKey },
  });
const receipt = (id: string, by = key) => api.inject(by, { method: 'GET', url: `/v1/reveals/${id}` });
const saved = async (ip: string) => {
  await api.post(key, ip);
  await api.settled(key, ip);
};

describe('a reveal of an address with a saved result', () => {
  it('is complete at once, has one unit, and is shown the same at each read', async () => {
    const { ip, id } = await visit();
    provider.says(ip, record({ match_type: 'company', company: { name: 'Acme' } }));
    await saved(ip);
    const answer = await reveal(id);
    expect(answer.statusCode).toBe(200);
    const body = answer.json();
    expect(body).toMatchObject({
      session_id: id,
      tracker_id: tracker,
      custom: { n: address },
      status: 'complete',
      billable: true,
      billable_units: 1,
      status_url: `/v1/reveals/${body.reveal_id}`,
      result: { status: 'complete', match_type: 'company', company_found: true, company: { name: 'Acme' } },
    });
    expect(Date.parse(body.expires_at)).toBe(clock.now() + 30 * DAY);
    const read = await receipt(body.reveal_id);
    expect(read.statusCode).toBe(200);
    expect({ ...read.json(), request_id: '' }).toEqual({ ...body, request_id: '' });
  });

  it('is frozen: what is learnt later changes nothing, and a stale result serves', async () => {
    const { ip, id } = await visit();
    provider.says(ip, record({ match_type: 'isp', fresh_for_days: 1 }));
    await saved(ip);
    clock.advance(2 * DAY);
    const body = (await reveal(id)).json();
    expect(body.result).toMatchObject({ match_type: 'isp', stale: true, refresh_status: 'not_requested' });
    provider.says(ip, record({ match_type: 'company', company: { name: 'Later' } }));
    await saved(ip);
    expect((await receipt(body.reveal_id)).json().result).toEqual(body.result);
  });

  it('shows a refresh under way to the partner that asked for it, and to no other', async () => {
    const by = await api.key();
    const mine = await makeTracker(api, by);
    const { ip, id } = await visit(mine, by);
    provider.says(ip, record({ match_type: 'isp', fresh_for_days: 1 }));
    await saved(ip);
    clock.advance(2 * DAY);
    provider.says(ip, 'hangs');
    await api.post(await api.key(), ip);
    const shown = async () => (await reveal(id, randomUUID(), by)).json().result.refresh_status;
    expect(await shown()).toBe('not_requested');
    await api.post(by, ip);
    expect(await shown()).toBe('pending');
  });

  it('without any data has no unit', async () => {
    const { ip, id } = await visit();
    provider.says(ip, record({ match_type: 'unclassified' }));
    await saved(ip);
    expect((await reveal(id)).json()).toMatchObject({
      status: 'complete',
      billable: false,
      billable_units: 0,
    });
  });
});

describe('a reveal of an unknown address', () => {
  it('is pending, asks for the work, and completes when its receipt is read', async () => {
    const { ip, id } = await visit();
    provider.says(ip, record({ match_type: 'company', company: { name: 'New' } }));
    const answer = await reveal(id);
    expect(answer.statusCode).toBe(202);
    const { reveal_id, status, result, completed_at } = answer.json();
    expect({ status, result, completed_at }).toEqual({ status: 'pending', result: null, completed_at: null });
    expect(answer.headers).toMatchObject({ location: `/v1/reveals/${reveal_id}`, 'retry-after': '15' });
    const done = await eventually(
      'the reveal is complete',
      () => receipt(reveal_id),
      ({ statusCode }) => statusCode === 200,
    );
    expect(done.json()).toMatchObject({
      status: 'complete',
      billable_units: 1,
      result: { company: { name: 'New' } },
    });
  });

  it('is no submission of the API, and spends no allowance', async () => {
    const { ip, id } = await visit();
    provider.says(ip, 'hangs');
    const poor = await api.key({ new_enrichments_per_day: 0, pending_enrichments: 1 }, key.partner_id);
    const { reveal_id } = (await reveal(id, randomUUID(), poor)).json();
    await eventually(
      'the work is asked for',
      () => api.sql.query('select 1 from read.enrichment_work where ip = $1', [ip]),
      ({ rowCount }) => rowCount === 1,
    );
    expect(codeOf(await api.get(key, ip))).toBe('not_requested');
    expect((await receipt(reveal_id)).statusCode).toBe(202);
    expect((await api.usage(poor)).json().enrichment.pending).toBe(0);
  });

  it('is asked for by an event that names the address and leads to no reveal', async () => {
    const { ip, id } = await visit();
    provider.says(ip, 'hangs');
    await reveal(id);
    const requested = await eventually(
      'the work is asked for',
      () =>
        api.sql.query(
          `select metadata->>'$correlationId' as correlation, metadata->>'$causationId' as causation
           from eventlog.event where type = 'lookup.EnrichmentRequested.v1' and data->>'ip' = $1`,
          [ip],
        ),
      ({ rowCount }) => rowCount === 1,
    );
    const { correlation, causation } = requested.rows[0];
    const { rows } = await api.sql.query(
      `select type from eventlog.event
       where type like 'reveals.%' and (id = any ($1) or metadata->>'$correlationId' = any ($2))`,
      [
        [correlation, causation],
        [correlation, causation],
      ],
    );
    expect(rows).toEqual([]);
  });
});

it('a visitor whose address is not public is revealed at once, empty, and without a unit', async () => {
  await collect(api, tracker, { ip: '10.0.0.1' });
  const { sessions } = await feed(api, key, `tracker_id=${tracker}&limit=100`);
  const session = sessions.at(-1);
  expect(session?.visitor_country).toBeNull();
  expect((await reveal(session?.session_id as string)).json()).toMatchObject({
    status: 'complete',
    billable: false,
    result: { match_type: 'unclassified', company_found: false, company: null, enriched_at: null },
  });
});

describe('the Idempotency-Key', () => {
  it('makes one reveal and one unit of a hundred requests at once', async () => {
    const { ip, id } = await visit();
    provider.says(ip, record({ match_type: 'company', company: { name: 'Once' } }));
    await saved(ip);
    const idempotencyKey = randomUUID();
    const answers = await Promise.all(Array.from({ length: 100 }, () => reveal(id, idempotencyKey)));
    expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => answer.json().reveal_id)).size).toBe(1);
    const { rows } = await api.sql.query(
      `select count(*)::int as n from eventlog.event where data->>'session_id' = $1 and type = 'reveals.RevealCompleted.v1'`,
      [id],
    );
    expect(rows).toEqual([{ n: 1 }]);
  });

  it('of another session is a conflict; in other letters it is the same key', async () => {
    const [one, other] = [await visit(), await visit()];
    const idempotencyKey = randomUUID();
    const first = (await reveal(one.id, idempotencyKey)).json();
    expect(codeOf(await reveal(other.id, idempotencyKey))).toBe('idempotency_conflict');
    expect((await reveal(one.id, idempotencyKey.toUpperCase())).json().reveal_id).toBe(first.reveal_id);
  });

  it.each(['', 'x', '7f0c2d4e-5a61-1d0e-9b1a-3c0f8f3e62a1'])('%s is refused', async (bad) => {
    const { id } = await visit();
    expect(codeOf(await reveal(id, bad))).toBe('invalid_idempotency_key');
  });

  it('with an unknown outcome is unconfirmed, and repeating it shows the outcome', async () => {
    const { id } = await visit();
    const idempotencyKey = randomUUID();
    faults.failAppends('reveal-', () => new OutcomeUnknown('no answer'));
    expect(codeOf(await reveal(id, idempotencyKey))).toBe('reveal_unconfirmed');
    faults.heal();
    expect((await reveal(id, idempotencyKey)).statusCode).toBe(202);
  });
});

describe('what cannot be revealed', () => {
  it('is a session that is unknown, or another partner’s', async () => {
    const { id } = await visit();
    const stranger = await api.key();
    expect(codeOf(await reveal(randomUUID()))).toBe('session_not_found');
    expect(codeOf(await reveal('x'))).toBe('session_not_found');
    expect(codeOf(await reveal(id, randomUUID(), stranger))).toBe('session_not_found');
  });

  it('is one of a disabled or deleted tracker, whose earlier reveals still answer', async () => {
    const mine = await makeTracker(api, key);
    const { id } = await visit(mine);
    const idempotencyKey = randomUUID();
    const before = (await reveal(id, idempotencyKey)).json();
    await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${mine}` });
    expect(codeOf(await reveal(id))).toBe('tracker_disabled');
    expect((await reveal(id, idempotencyKey)).json().reveal_id).toBe(before.reveal_id);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${mine}/delete` });
    expect(codeOf(await reveal(id))).toBe('tracker_deleted');
    expect((await receipt(before.reveal_id)).statusCode).toBeLessThan(203);
  });

  it('is a body that holds anything, or a query', async () => {
    const { id } = await visit();
    const headers = { 'idempotency-key': randomUUID() };
    const url = `/v1/sessions/${id}/reveal`;
    expect(codeOf(await api.inject(key, { method: 'POST', url, headers, payload: { a: 1 } }))).toBe(
      'invalid_body',
    );
    expect(codeOf(await api.inject(key, { method: 'POST', url: `${url}?a=1`, headers }))).toBe(
      'invalid_query',
    );
    expect((await api.inject(key, { method: 'POST', url, headers, payload: {} })).statusCode).toBe(202);
  });

  it('is more than a hundred a second of one partner', async () => {
    const by = await api.key();
    const mine = await makeTracker(api, by);
    const { id } = await visit(mine, by);
    const answers = await Promise.all(Array.from({ length: 110 }, () => reveal(id, randomUUID(), by)));
    const refused = answers.filter(({ statusCode }) => statusCode === 429);
    expect(refused).toHaveLength(10);
    expect(refused.map(codeOf)).toEqual(Array(10).fill('tracking_capacity'));
    clock.advance(1_100);
    expect((await reveal(id, randomUUID(), by)).statusCode).toBeLessThan(203);
  });
});

describe('a receipt', () => {
  it('that is unknown, or another partner’s, is not found', async () => {
    const { id } = await visit();
    const { reveal_id } = (await reveal(id)).json();
    expect(codeOf(await receipt(randomUUID()))).toBe('reveal_not_found');
    expect(codeOf(await receipt('x'))).toBe('reveal_not_found');
    expect(codeOf(await receipt(reveal_id, await api.key()))).toBe('reveal_not_found');
  });

  it('is gone with its session, and so is its key', async () => {
    const { id } = await visit();
    const idempotencyKey = randomUUID();
    const { reveal_id } = (await reveal(id, idempotencyKey)).json();
    await api.caughtUp();
    clock.advance(30 * DAY);
    expect(codeOf(await receipt(reveal_id))).toBe('reveal_expired');
    expect(codeOf(await reveal(id, idempotencyKey))).toBe('session_expired');
    const next = await visit();
    expect(codeOf(await reveal(next.id, idempotencyKey))).toBe('reveal_expired');
  });
});
