import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { pino } from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { MAX_NOTIFIED_ENDPOINTS, startWatch, type Watch } from '../../processors/webhooks/watch.ts';
import { until } from '../support/until.ts';

let watch: Watch;
let polls: number;
let scheduled: string[];
let partners: string[];
const PARTNER = randomUUID();

const aWatch = (): Watch => {
  [polls, scheduled, partners] = [0, [], []];
  const query = async ({ name, values }: { name: string; values: unknown[] }) => {
    if (name === 'partners_of_endpoints') {
      return { rows: (values[0] as string[]).map((webhook_id) => ({ webhook_id, partner_id: PARTNER })) };
    }
    polls += 1;
    return { rows: [] };
  };
  watch = startWatch({
    pool: { query } as unknown as pg.Pool,
    clock: { now: () => 0 },
    log: pino({ level: 'silent' }),
    schedule: (webhookId, partnerId) => {
      scheduled.push(webhookId);
      partners.push(partnerId);
    },
    onWatched: () => undefined,
  });
  return watch;
};

afterEach(() => watch.stop());

const notificationOf = (ids: readonly string[]): string =>
  JSON.stringify(ids.map((id) => [id, randomUUID(), '']));

it('polls once instead of scheduling thousands of endpoints that notifications name', async () => {
  const { onNotification } = aWatch();
  await until('the first poll', () => polls === 1);
  for (let n = 0; n < 60; n += 1)
    onNotification(notificationOf(Array.from({ length: 90 }, () => randomUUID())));

  await until('a poll', () => polls === 2);
  await until('the endpoints are scheduled', () => scheduled.length >= MAX_NOTIFIED_ENDPOINTS);
  expect(scheduled).toHaveLength(MAX_NOTIFIED_ENDPOINTS);
});

it('schedules an endpoint as often as notifications name it', async () => {
  const { onNotification } = aWatch();
  const id = randomUUID();
  onNotification(notificationOf([id]));
  await until('its partner is known', () => scheduled.length === 1);
  for (let n = 1; n < 3 * MAX_NOTIFIED_ENDPOINTS; n += 1) onNotification(notificationOf([id]));

  expect(scheduled).toHaveLength(3 * MAX_NOTIFIED_ENDPOINTS);
});

it('does not believe a notification about whose an endpoint is, because any database user may notify', async () => {
  const { onNotification } = aWatch();
  const ids = Array.from({ length: 5 }, () => randomUUID());
  for (const id of [...ids, ...ids]) onNotification(notificationOf([id]));
  await until('the endpoints are scheduled', () => new Set(scheduled).size === ids.length);
  for (const id of ids) onNotification(notificationOf([id]));

  expect(new Set(partners)).toEqual(new Set([PARTNER]));
});

it('reads a notification up to its first fault', async () => {
  const { onNotification } = aWatch();
  const validated = vi.spyOn(Array, 'isArray');
  onNotification(JSON.stringify(Array.from({ length: 3_990 }, () => 1)));
  const count = validated.mock.calls.length;
  validated.mockRestore();

  expect(scheduled).toEqual([]);
  expect(count).toBeLessThan(10);
});
