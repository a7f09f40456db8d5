import { expect, it } from 'vitest';

import type { Visit } from '../../dashboard/api.ts';
import { domainPages } from '../../dashboard/pages/domains.ts';
import { sessionPages } from '../../dashboard/pages/sessions.ts';

const ROWS = 100;

/** A page for a partner with as many trackers as rows, and how often it reads the id of one. */
const visited = () => {
  const reads = { count: 0 };
  const trackers = Array.from({ length: ROWS }, (_, index) => ({
    name: `Website ${index}`,
    get id() {
      reads.count += 1;
      return `tracker-${index}`;
    },
  }));
  const visit = {
    request: { params: {}, receivedAt: 0 },
    user: {},
    query: new URLSearchParams(),
    form: new URLSearchParams(),
    api: async () => ({ ok: true, status: 200, body: { trackers } }),
  } as unknown as Visit;
  return { visit, reads };
};

const trackerIds = Array.from({ length: ROWS }, (_, index) => `tracker-${index}`);
const at = '2026-03-01T12:00:00.000Z';

const domains = domainPages({
  list: async () =>
    trackerIds.map((tracker_id) => ({
      ...{ tracker_id, domain_id: tracker_id, hostname: 'visits.example.com' },
      ...{ status: 'active', created_at: at, last_error: null },
    })),
});
const sessions = sessionPages({
  recent: async () => ({
    sessions: trackerIds.map((tracker_id) => ({
      ...{ tracker_id, session_id: tracker_id, customer_reference: null, visitor_country: null },
      ...{ first_seen_at: at, last_seen_at: at, expires_at: at },
    })),
    older: null,
  }),
  revealsOf: async () => [],
});

it.each([
  ['domains', domains],
  ['sessions', sessions],
])('the list of %s names trackers without searching all of them for each row', async (_what, [list]) => {
  const { visit, reads } = visited();
  const answer = await list?.handle(visit);
  expect(String(answer?.body)).toContain('Website 99');
  expect(reads.count).toBeLessThan(5 * ROWS);
});
