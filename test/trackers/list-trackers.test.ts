import { randomUUID } from 'node:crypto';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listTrackersRoute } from '../../read-api/trackers/list-trackers.ts';
import { startApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

it('a thousand trackers are read and written some at a time, in order, those of one moment too', async () => {
  const partner_id = randomUUID();
  const origins = Array.from(
    { length: 50 },
    (_, nth) => `https://${'x'.repeat(60)}.${'y'.repeat(60)}${nth}.example`,
  );
  await api.sql.query(
    `insert into read.tracker (tracker_id, partner_id, name, origins, customer_reference, created_at)
     select gen_random_uuid(), $1, 'a "name"', $2, null, timestamptz '2026-03-01' + nth / 70 * interval '1 ms'
     from generate_series(1, 1000) nth`,
    [partner_id, origins],
  );
  const { rows } = await api.sql.query(
    'select tracker_id from read.tracker where partner_id = $1 order by created_at, tracker_id',
    [partner_id],
  );
  const pages: number[] = [];
  const db = {
    any: async (...query: Parameters<DatabasePool['any']>) => {
      const page = await api.runtime.db.any(...query);
      pages.push(page.length);
      return page;
    },
  } as unknown as DatabasePool;
  const route = listTrackersRoute(db, 'https://doorplate.example');
  const request = { query: '', id: 'an id', caller: { partner_id } };
  const { body } = (await route.handle(request as never)) as { body: string };
  const { trackers, request_id } = JSON.parse(body) as {
    trackers: { id: string; name: string }[];
    request_id: string;
  };
  expect(trackers.map(({ id }) => id)).toEqual(rows.map(({ tracker_id }) => tracker_id));
  expect([trackers[0]?.name, request_id]).toEqual(['a "name"', 'an id']);
  expect(Math.max(...pages)).toBeLessThanOrEqual(50);
});
