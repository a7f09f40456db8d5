import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { CONDITIONS, findNotices, findReported } from '../../operations/conditions.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock } from '../support/manual-clock.ts';

const clock = manualClock();
const partner = randomUUID();
const [id, other] = [randomUUID(), randomUUID()];
const config = {
  ENRICHMENT_OUTSTANDING: 1,
  WEBHOOK_QUEUE_PER_PARTNER: 100,
  WEBHOOK_PAYLOAD_BYTES_PER_PARTNER: 1_000,
  OPERATOR_WEBHOOK_URL: 'https://alerts.example/',
  providers: [{ name: 'http', kind: 'http', timeoutMs: 1, requestsPerDay: 5 } as never],
};
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database, 2);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const at = (ms: number): string => `'${new Date(clock.now() + ms).toISOString()}'`;
const NOW = at(0);
const endpoint = (failures: number): string => `
  insert into read.webhook_endpoint (webhook_id, partner_id, name, url, events, enabled, secret, created_at, updated_at, last_revision, last_position)
  values ('${id}', '${partner}', 'CRM', 'https://crm.example/', '{}', true, '{}', ${NOW}, ${NOW}, 0, 0);
  insert into read.webhook_health (webhook_id, partner_id, pending, failures_in_row, still_ms, last_error, last_http_status)
  values ('${id}', '${partner}', 1, ${failures}, 0, 'http_status', 503)`;
const key = (limit: number | null, expires: string): string => `
  insert into read.api_key (key_id, partner_id, name, hash, requests_per_second, new_enrichments_per_day, pending_enrichments,
                            company_signals, expires_at, created_at)
  values ('k1', '${partner}', 'web', 'h1', 50, ${limit}, 1, false, ${expires}, ${NOW})`;
const reservation = `
  insert into read.reservation (reservation_id, partner_id, key_id, ip, kind, state, made_at)
  values ('${id}', '${partner}', 'k1', '8.8.8.8', 'first', 'submitted', ${NOW})`;
const domain = (status: string, error: string): string => `
  insert into read.domain (domain_id, hostname, tracker_id, partner_id, status, created_at, activated_at, last_error)
  values ('${id}', 'a.example', '${other}', '${partner}', '${status}', ${NOW}, ${NOW}, '${error}')`;

/** What the tables hold, what status says of it (null: nothing), and what the partner reads. */
const CASES: readonly (readonly [string, string, string, RegExp | null, string?])[] = [
  [
    'a delivery that has been due for a minute',
    `insert into read.webhook_health (webhook_id, partner_id, pending, failures_in_row, still_ms) values ('${id}', '${partner}', 1, 0, 0);
     insert into read.webhook_delivery (delivery_id, webhook_id, partner_id, event_id, type, state, cycle, attempts, cycle_attempts,
       cycle_started_at, stood_still_ms, created_at, position, payload_expires_at, next_attempt_at)
     values ('${id}', '${id}', '${partner}', 'evt', 'session.created', 'pending', 1, 0, 0, ${NOW}, 0, ${NOW}, 1, ${at(DAY)}, ${at(-60_000)})`,
    'deliveries_late',
    /^1 deliveries are due, the oldest for 1 min$/,
  ],
  [
    'an open breaker',
    endpoint(10),
    'endpoint_held',
    /“CRM” .+ 10 failures in a row, HTTP 503$/,
    'Deliveries to “CRM” are held back: 10 failures in a row, HTTP 503.',
  ],
  [
    'three failures in a row',
    endpoint(3),
    'endpoint_failing',
    null,
    'Deliveries to “CRM” fail: 3 failures in a row, HTTP 503.',
  ],
  ['two failures in a row', endpoint(2), '', null],
  [
    'a provider whose last call failed',
    `insert into work.provider_day (provider, day, failed, last_failed_at) values ('http', ${NOW}, 2, ${NOW})`,
    'provider_failing',
    /^provider http fails: .+ 2 of 2 calls today/,
  ],
  [
    'a provider without budget',
    `insert into work.provider_day (provider, day, budget_used) values ('http', ${NOW}, 5)`,
    'provider_budget',
    /^provider http has used its budget of today$/,
  ],
  [
    'a queue at four fifths',
    `${endpoint(0)}; update read.webhook_health set pending = 80`,
    'queue_near',
    /^80 of 100 pending deliveries of partner/,
  ],
  [
    'differences of an audit',
    `insert into work.audit_verdict (partner_id, began_at, ended_at, report) values ('${partner}', ${NOW}, ${NOW}, '{"differences": [{"kind": "x"}]}')`,
    'audit_difference',
    /found 1 differences$/,
  ],
  [
    'an alert that was not accepted',
    `insert into work.operator_alert (alert_id, type, body, created_at, due_at, attempts, last_error) values ('a', 'x', '{}', ${at(-HOUR)}, ${NOW}, 1, 'timeout')`,
    'operator_webhook_failing',
    /has not accepted 1 alerts for 1 h: timeout$/,
  ],
  [
    'a key that expires in 13 days',
    key(null, at(13 * DAY)),
    'key_expires',
    /^key “web” \(k1\)/,
    'The key “web” expires on',
  ],
  ['a key that expires in 15 days', key(null, at(15 * DAY)), '', null],
  [
    'a used allowance',
    `${key(1, 'null')}; update read.api_key set pending_enrichments = 9; ${reservation}`,
    'allowance_near',
    /has used 1 of 1 new/,
    'The key “web” has used 1 of 1 new enrichments today.',
  ],
  [
    'unfinished enrichments',
    `${key(null, 'null')}; ${reservation}`,
    'pending_near',
    null,
    '1 enrichments are unfinished; from 1 on new ones are refused.',
  ],
  [
    'a domain that points elsewhere',
    domain('active', 'points_elsewhere'),
    'domain_ceased',
    /a\.example .+ \(active, points_elsewhere\)$/,
    'a.example has ceased to point here.',
  ],
  [
    'a domain that failed',
    domain('failed', 'dns_timeout'),
    'domain_ceased',
    /\(failed, dns_timeout\)$/,
    'a.example no longer points here, so its snippet collects nothing.',
  ],
  [
    'a domain whose DNS does not answer, which its partner can mend',
    domain('active', 'dns_timeout'),
    '',
    null,
    'a.example has ceased to point here. After three days its snippet stops collecting.',
  ],
  [
    'an open breaker of a suspended partner',
    `${endpoint(10)}; update read.webhook_health set partner_suspended_at = ${NOW}`,
    '',
    null,
  ],
];

it.each(CASES.map(([name, ...rest]) => ({ name, rest })))(
  '$name',
  async ({ rest: [tables, code, text, notice] }) => {
    await pool.query(tables);
    onTestFinished(async () => {
      await pool.query(`truncate read.webhook_health, read.webhook_endpoint, read.webhook_delivery, work.provider_day, work.audit_verdict,
      work.operator_alert, read.api_key, read.reservation, read.domain`);
    });
    const reads = { pool, now: clock.now(), config };
    const ofStatus = CONDITIONS.filter(({ channels }) => channels.includes('status'));
    const found = await Promise.all(ofStatus.map((one) => findReported(one, { ...reads, partnerId: null })));
    const told = text === null ? [] : [expect.objectContaining({ code, text: expect.stringMatching(text) })];
    expect(found.flat()).toEqual(told);
    const texts = (await findNotices({ ...reads, partnerId: partner })).map((one) => one.text);
    expect(texts).toEqual(notice === undefined ? [] : [expect.stringContaining(notice)]);
    expect(await findNotices({ ...reads, partnerId: randomUUID() })).toEqual([]);
  },
);
