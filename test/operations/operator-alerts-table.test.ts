import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { v5 as uuidv5 } from 'uuid';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, isoTime, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import { ALERT_NAMESPACE } from '../../operations/condition.ts';
import { conditionsOf } from '../../operations/conditions.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { deliverAlerts } from '../../processors/operations/deliver-alerts.ts';
import {
  forgetAlerts,
  recordAuditDifferences,
  recordConditions,
} from '../../processors/operations/operator-alerts.ts';
import type { SendResult } from '../../processors/webhooks/delivery/sender.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock } from '../support/manual-clock.ts';

const clock = manualClock();
const partner = randomUUID();
const webhook = randomUUID();
const config = {
  ENRICHMENT_OUTSTANDING: 1_000,
  WEBHOOK_QUEUE_PER_PARTNER: 100,
  WEBHOOK_PAYLOAD_BYTES_PER_PARTNER: 1_000,
  OPERATOR_WEBHOOK_URL: 'https://alerts.example/',
  providers: [],
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

const at = (ms: number): Date => new Date(clock.now() + ms);
const watch = () => recordConditions({ pool, clock, config }, conditionsOf('webhook'));
/** The alerts since the last call, as `type about`. */
async function told() {
  const { rows } = await pool.query<{ type: string; body: string }>(
    'select type, body from work.operator_alert order by created_at, type, alert_id',
  );
  await pool.query(
    `update work.operator_alert set created_at = '2000-01-01', type = 'told ' || type where type !~ '^told'`,
  );
  return rows.filter(({ type }) => !type.startsWith('told')).map(({ body }) => JSON.parse(body));
}

describe('what the operator hears of', () => {
  it('is nothing while nothing is wrong', async () => {
    await watch();
    expect(await told()).toEqual([]);
  });

  it('an endpoint that has been held back for an hour, for a day, and recovers: once each', async () => {
    await pool.query(
      `insert into read.webhook_endpoint (webhook_id, partner_id, name, url, events, enabled, secret, created_at, updated_at, last_revision, last_position)
       values ($1, $2, 'CRM', 'https://crm.example/', '{}', true, '{}', $3, $3, 0, 0)`,
      [webhook, partner, at(0)],
    );
    await pool.query(
      `insert into read.webhook_health (webhook_id, partner_id, pending, failures_in_row, still_ms) values ($1, $2, 7, 10, 0)`,
      [webhook, partner],
    );
    await watch();
    clock.advance(59 * MINUTE);
    await watch();
    expect((await pool.query('select from work.operator_alert')).rowCount).toBe(0);
    clock.advance(MINUTE);
    await Promise.all([watch(), watch()]);
    await watch();
    clock.advance(23 * HOUR);
    await watch();
    await pool.query('update read.webhook_health set failures_in_row = 0');
    await watch();
    await watch();
    const data = { partner_id: partner, webhook_id: webhook, name: 'CRM', held_since: expect.any(String) };
    const { rows } = await pool.query<{ body: string }>(
      'select body from work.operator_alert order by created_at, type',
    );
    expect(rows.map(({ body }) => JSON.parse(body))).toEqual(
      [
        { type: 'operator.endpoint_held', data: { ...data, hours: 1, pending: 7 } },
        { type: 'operator.endpoint_held', data: { ...data, hours: 24, pending: 7 } },
        { type: 'operator.endpoint_recovered', data },
      ].map((body) => ({
        ...body,
        id: expect.stringMatching(/^evt_operator_[0-9a-f-]{36}$/),
        schema_version: 1,
        created_at: expect.any(String),
      })),
    );
    await told();
  });

  it('a consumer that an event has stopped, differences of an audit, a full queue, a key that expires and a domain', async () => {
    await pool.query(`insert into work.processor (name, stopped_by) values ('billing', 'an event')`);
    await pool.query(
      `insert into work.audit_verdict (partner_id, began_at, ended_at, report) values ($1, $2, $2, $3)`,
      [
        partner,
        at(0),
        JSON.stringify({ differences: [{ kind: 'missing_entry' }, { kind: 'missing_entry' }] }),
      ],
    );
    await pool.query('update read.webhook_health set pending = 80');
    await pool.query(
      `insert into read.api_key (key_id, partner_id, name, hash, requests_per_second, new_enrichments_per_day, pending_enrichments,
                                 company_signals, expires_at, created_at)
       values ('k1', $1, 'web', 'h1', 50, 5, 100, false, $2, $3), ('k2', $1, 'later', 'h2', 50, null, 100, false, $4, $3)`,
      [partner, at(6 * DAY), at(0), at(20 * DAY)],
    );
    await pool.query(
      `insert into read.domain (domain_id, hostname, tracker_id, partner_id, status, created_at, activated_at, last_error)
       values ($1, 'a.example', $1, $2, 'active', $3, $3, 'points_elsewhere'), ($4, 'b.example', $1, $2, 'active', $3, $3, 'dns_timeout')`,
      [randomUUID(), partner, at(0), randomUUID()],
    );
    await watch();
    await watch();
    const alerts = await told();
    const about = [
      `audit_difference ${partner} ${uuidv5('[{"kind":"missing_entry"},{"kind":"missing_entry"}]', ALERT_NAMESPACE)}`,
      `consumer_stopped processor billing ${isoTime(clock.now())} an event`,
      `domain_ceased ${alerts[2].data.domain_id} ${isoTime(clock.now())}`,
      `key_expires k1 ${isoTime(clock.now() + 6 * DAY)}`,
      `queue_near webhook_deliveries ${partner} ${utcDay(clock.now())}`,
    ];
    expect(alerts.map(({ id }) => id)).toEqual(
      about.map((name) => `evt_operator_${uuidv5(`operator.${name}`, ALERT_NAMESPACE)}`),
    );
    expect(alerts.map(({ type, data }) => [type, data])).toEqual([
      ['operator.audit_difference', { partner_id: partner, differences: 2, kinds: ['missing_entry'] }],
      ['operator.consumer_stopped', { kind: 'processor', name: 'billing', stopped_by: 'an event' }],
      [
        'operator.domain_ceased',
        expect.objectContaining({ hostname: 'a.example', last_error: 'points_elsewhere' }),
      ],
      ['operator.key_expires', expect.objectContaining({ key_id: 'k1', name: 'web' })],
      ['operator.queue_near', { queue: 'webhook_deliveries', partner_id: partner, used: 80, limit: 100 }],
    ]);
    clock.advance(DAY);
    await watch();
    expect((await told()).map(({ type }) => type)).toEqual(['operator.queue_near']);
  });

  it('what ended and came again: another time, and never for a resolver that does not answer', async () => {
    const stop = (by: string | null) =>
      pool.query(`update work.processor set stopped_by = $1 where name = 'billing'`, [by]);
    const ceases = (error: string | null) =>
      pool.query(`update read.domain set last_error = $1 where hostname = 'a.example'`, [error]);
    await Promise.all([stop(null), ceases('dns_timeout')]);
    await watch();
    await Promise.all([stop('an event'), ceases('points_elsewhere')]);
    clock.advance(MINUTE);
    await watch();
    await watch();
    expect((await told()).map(({ type }) => type)).toEqual(['operator.consumer_stopped']);
    await ceases(null);
    await watch();
    await ceases('points_elsewhere');
    clock.advance(MINUTE);
    await watch();
    expect((await told()).map(({ type }) => type)).toEqual(['operator.domain_ceased']);
  });

  it('an endpoint whose breaker opened during a suspension counts from the breaker, and waits for the end of the suspension', async () => {
    const health = (set: string) => pool.query(`update read.webhook_health set ${set}`);
    await health('failures_in_row = 10, partner_suspended_at = now()');
    await watch();
    const opened = new Date(clock.now()).toISOString();
    clock.advance(2 * HOUR);
    await watch();
    expect(await told()).toEqual([]);
    await health('partner_suspended_at = null');
    await watch();
    expect(await told()).toMatchObject([
      { type: 'operator.endpoint_held', data: { held_since: opened, hours: 1 } },
    ]);
    await health('failures_in_row = 0');
  });

  it('an allowance of which four fifths are used, once a day', async () => {
    const reserve = () =>
      pool.query(
        `insert into read.reservation (reservation_id, partner_id, key_id, ip, kind, state, made_at)
         values ($1, $2, 'k1', '8.8.8.8', 'first', 'submitted', $3)`,
        [randomUUID(), partner, at(0)],
      );
    for (let n = 0; n < 3; n += 1) await reserve();
    await watch();
    expect(await told()).toEqual([]);
    await reserve();
    await watch();
    await watch();
    expect(await told()).toMatchObject([{ data: { key_id: 'k1', used: 4, limit: 5 } }]);
  });

  it('does not hide behind a condition that cannot be read', async () => {
    await pool.query('alter table read.domain rename to domain_away');
    await pool.query(`update work.processor set stopped_by = 'another event'`);
    await expect(watch()).rejects.toThrow('read.domain');
    await pool.query('alter table read.domain_away rename to domain');
    expect(await told()).toMatchObject([{ type: 'operator.consumer_stopped' }]);
  });

  it('a domain that still does not point here once, also when its alert has been forgotten', async () => {
    await pool.query('delete from work.operator_alert');
    clock.advance(31 * DAY);
    await watch();
    expect((await told()).map(({ type }) => type)).not.toContain('operator.domain_ceased');
  });
});

describe('the delivery of alerts', () => {
  it('retries the same id and body until the receiver accepts them, and forgets them after 30 days', async () => {
    await pool.query('delete from work.operator_alert');
    await recordAuditDifferences(pool, partner, [{ kind: 'x' }], clock.now());
    const posted: [string, string][] = [];
    const answers: SendResult[] = [
      { http_status: null, error: 'connect', retry_after_ms: null },
      { http_status: 503, error: 'http_status', retry_after_ms: 90_000 },
      { http_status: 204, error: null, retry_after_ms: null },
    ];
    const run = () =>
      deliverAlerts({
        pool,
        clock,
        log: createLogger({ level: 'silent' }),
        post: async (id, body) => {
          posted.push([id, body.toString()]);
          return answers.shift() as SendResult;
        },
        retryBaseMs: 15_000,
        random: () => 0.5,
        signal: new AbortController().signal,
      });
    await run();
    await run();
    expect(posted).toHaveLength(1);
    clock.advance(15_000);
    await run();
    clock.advance(60_000);
    await run();
    expect(posted).toHaveLength(2);
    clock.advance(30_000);
    await run();
    await run();
    expect(posted).toHaveLength(3);
    expect(new Set(posted.map(String)).size).toBe(1);
    const { rows } = await pool.query('select attempts, delivered_at, last_error from work.operator_alert');
    expect(rows).toEqual([{ attempts: 3, delivered_at: at(0), last_error: null }]);
    await forgetAlerts(pool, clock.now() + 29 * DAY);
    expect((await pool.query('select from work.operator_alert')).rowCount).toBe(1);
    await forgetAlerts(pool, clock.now() + 31 * DAY);
    expect((await pool.query('select from work.operator_alert')).rowCount).toBe(0);
  });
});
