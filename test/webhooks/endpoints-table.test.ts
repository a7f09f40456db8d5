import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import type { EndpointChangeEvent, EndpointEvent } from '../../domain/webhooks/events.ts';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { AT } from '../lookup/lookup-events.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: pg.Client;
beforeAll(async () => {
  database = await testDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  await db.query('set search_path to read');
});
const empty = () => db.query('truncate webhook_endpoint, webhook_subscription');
beforeEach(empty);
afterAll(async () => {
  await db.end();
  await database.drop();
});

const partner_id = randomUUID();
const tracker_id = randomUUID();
const [A, B] = [randomUUID(), randomUUID()].toSorted() as [string, string];
const secret = (sealed: string, master_key_id = 'old') => ({ master_key_id, sealed });
const BOTH = ['session.created', 'reveal.completed'] as const;

const created = (webhook_id: string, at = AT): EndpointChangeEvent => ({
  type: 'webhooks.EndpointCreated.v1',
  data: {
    webhook_id,
    partner_id,
    name: 'receiver',
    url: 'https://hooks.example.com/',
    events: [...BOTH],
    tracker_id,
    secret: secret('first'),
    created_at: isoTime(at),
  },
});
const updated = (
  webhook_id: string,
  over: Partial<Extract<EndpointChangeEvent, { type: 'webhooks.EndpointUpdated.v1' }>['data']> = {},
): EndpointChangeEvent => ({
  type: 'webhooks.EndpointUpdated.v1',
  data: {
    webhook_id,
    partner_id,
    name: 'receiver',
    events: [...BOTH],
    enabled: true,
    updated_at: isoTime(AT + HOUR),
    ...over,
  },
});
const rotated = (webhook_id: string): EndpointChangeEvent => ({
  type: 'webhooks.SecretRotated.v1',
  data: {
    webhook_id,
    partner_id,
    secret: secret('second'),
    rotated_at: isoTime(AT + HOUR),
    rotation_until: isoTime(AT + HOUR + DAY),
  },
});
const resealed = (webhook_id: string): EndpointChangeEvent => ({
  type: 'webhooks.SecretsResealed.v1',
  data: { webhook_id, partner_id, secret: secret('resealed', 'young'), previous: null },
});
const deleted = (webhook_id: string): EndpointChangeEvent => ({
  type: 'webhooks.EndpointDeleted.v1',
  data: { webhook_id, partner_id, deleted_at: isoTime(AT + 2 * HOUR) },
});

const metadata: EventMetadata = { $correlationId: 'c', $causationId: 'c', at: isoTime(AT) };
/** Positions from 100 on. */
const log = (...events: EndpointEvent[]): RecordedEvent[] =>
  events.map((event, index) => ({
    ...event,
    id: randomUUID(),
    metadata,
    stream: `webhooks-${partner_id}`,
    revision: index,
    position: BigInt(100 + index) as Position,
  }));
const rows = async () => ({
  endpoints: (await db.query('select * from webhook_endpoint order by webhook_id')).rows,
  spans: (await db.query('select * from webhook_subscription order by webhook_id, from_position')).rows.map(
    ({ webhook_id, events, from_position, to_position }) => [
      webhook_id,
      events.length,
      Number(from_position),
      to_position && Number(to_position),
    ],
  ),
});
/** Applies all in one batch, then again, then one by one with each delivered twice, then all once more. */
const applied = async (...events: EndpointChangeEvent[]) => {
  const stored = log(...events);
  await endpoints.apply(stored, db);
  const atOnce = await rows();
  await endpoints.apply(stored, db);
  expect(await rows(), 'delivered twice').toEqual(atOnce);
  await empty();
  for (const event of stored) await endpoints.apply([event, event], db);
  expect(await rows(), 'one by one').toEqual(atOnce);
  await endpoints.apply(stored, db);
  expect(await rows(), 'from the beginning again').toEqual(atOnce);
  return atOnce;
};

describe('the read model of webhook endpoints', () => {
  it('has the current endpoints with their secrets', async () => {
    const { endpoints } = await applied(
      created(A),
      created(B),
      updated(B, { name: 'other', events: ['reveal.completed'], enabled: false }),
      rotated(B),
    );
    expect(endpoints).toMatchObject([
      {
        webhook_id: A,
        partner_id,
        name: 'receiver',
        url: 'https://hooks.example.com/',
        events: [...BOTH],
        tracker_id,
        enabled: true,
        created_at: new Date(AT),
        updated_at: new Date(AT),
        deleted_at: null,
        secret: secret('first'),
        previous_secret: null,
        secret_rotation_until: null,
        last_position: '100',
      },
      {
        webhook_id: B,
        name: 'other',
        events: ['reveal.completed'],
        enabled: false,
        updated_at: new Date(AT + HOUR),
        secret: secret('second'),
        previous_secret: secret('first'),
        secret_rotation_until: new Date(AT + HOUR + DAY),
        last_position: '103',
      },
    ]);
  });

  it('applies resealed secrets and drops those of a deleted endpoint', async () => {
    const { endpoints } = await applied(
      created(A),
      rotated(A),
      resealed(A),
      created(B),
      rotated(B),
      deleted(B),
    );
    expect(endpoints).toMatchObject([
      { secret: secret('resealed', 'young'), previous_secret: null, updated_at: new Date(AT + HOUR) },
      { secret: null, previous_secret: null, enabled: false, deleted_at: new Date(AT + 2 * HOUR) },
    ]);
  });

  it('has the position at which each was enabled with which events', async () => {
    const { spans } = await applied(
      created(A),
      created(B),
      updated(A, { enabled: false }),
      updated(A, { enabled: false, name: 'still paused' }),
      updated(A),
      updated(A, { name: 'the same events' }),
      updated(A, { events: ['session.created'] }),
      rotated(A),
      deleted(A),
    );
    expect(spans).toEqual([
      [A, 2, 100, 102],
      [A, 2, 104, 106],
      [A, 1, 106, 108],
      [B, 2, 101, null],
    ]);
  });
});
