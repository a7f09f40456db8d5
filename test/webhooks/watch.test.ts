import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { pino } from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { MAX_NOTIFIED_ENDPOINTS, startWatch, type Watch } from '../../processors/webhooks/watch.ts';
import { until } from '../support/until.ts';

let watch: Watch;
let polls: number;
let scheduled: string[];

const aWatch = (): Watch => {
  [polls, scheduled] = [0, []];
  const query = async () => {
    polls += 1;
    return { rows: [] };
  };
  watch = startWatch({
    pool: { query } as unknown as pg.Pool,
    clock: { now: () => 0 },
    log: pino({ level: 'silent' }),
    schedule: (webhookId) => void scheduled.push(webhookId),
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
  expect(scheduled).toHaveLength(MAX_NOTIFIED_ENDPOINTS);
});

it('schedules an endpoint as often as notifications name it', async () => {
  const { onNotification } = aWatch();
  const id = randomUUID();
  for (let n = 0; n < 3 * MAX_NOTIFIED_ENDPOINTS; n += 1) onNotification(notificationOf([id]));

  expect(scheduled).toHaveLength(3 * MAX_NOTIFIED_ENDPOINTS);
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
