import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEvent } from '../../domain/kernel/events.ts';
import { HOUR } from '../../domain/kernel/time.ts';
import { UNKNOWN_COMPANY, UNKNOWN_NETWORK } from '../../domain/lookup/result.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import { revealEnvelope } from '../../domain/webhooks/envelope.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const IP = '5.40.0.1';
const COMPANY = { ...UNKNOWN_COMPANY, name: 'Acme', website: 'https://acme.example' };

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
  provider.says(IP, aCompany('Acme', { company: COMPANY }));
  await api.post(key, IP);
  await api.settled(key, IP);
});
afterAll(() => api.close());

it('a lookup shows as null a field that the stored result lacks, also from memory', async () => {
  await api.sql.query(
    `update read.saved_lookup set company = (company::jsonb - 'naics_code')::json, network = (network::jsonb - 'detail_level')::json`,
  );
  // Past the time for which the process remembers the answer.
  clock.advance(HOUR);
  const answers = [await api.get(key, IP), await api.get(key, IP), await api.post(key, IP)];
  for (const answer of answers) {
    expect(answer.json()).toMatchObject({
      status: 'complete',
      company: COMPANY,
      network: { detail_level: null },
    });
  }
});

it('a receipt shows as null a field that the stored reveal lacks', async () => {
  const tracker = await makeTracker(api, key);
  await collect(api, tracker, { ip: IP });
  const [session] = (await feed(api, key, `tracker_id=${tracker}`)).sessions;
  const url = `/v1/sessions/${session?.session_id}/reveal`;
  const headers = { 'idempotency-key': randomUUID() };
  const revealed = (await api.inject(key, { method: 'POST', url, headers })).json();
  expect(revealed.result).toMatchObject({ company: COMPANY, network: { detail_level: null } });
  await api.sql.query(
    `update read.reveal set result = (result::jsonb #- '{company,naics_code}' #- '{network,detail_level}')::json where reveal_id = $1`,
    [revealed.reveal_id],
  );
  const receipt = await api.inject(key, { method: 'GET', url: revealed.status_url });
  expect(receipt.json().result).toEqual(revealed.result);
});

it('a webhook event shows as null a field that the stored completion lacks', () => {
  const id = randomUUID();
  const at = new Date(clock.now()).toISOString();
  const { naics_code: _, ...company } = COMPANY;
  const { detail_level: __, ...network } = UNKNOWN_NETWORK;
  const result = {
    ...{ status: 'complete', match_type: 'company', company_found: true, enriched_at: at, company, network },
    ...{ stale: false, fresh_until: at, refresh_status: 'not_needed', refresh_error: null },
  };
  const data = {
    ...{ reveal_id: id, session_id: id, tracker_id: id, partner_id: id, key_id: 'key_1', user_id: null },
    ...{ created_at: at, expires_at: at, completed_at: at, billable: true, result },
  };
  const event = readEvent(revealEvents, { type: 'reveals.RevealCompleted.v1', data });
  if (event?.type !== 'reveals.RevealCompleted.v1') throw new TypeError('not read');
  expect(revealEnvelope(event.data, {}).data).toMatchObject({
    result: { company: COMPANY, network: { detail_level: null } },
  });
});
