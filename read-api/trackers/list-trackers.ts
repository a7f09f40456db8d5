import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { refusal } from '../../http/error-catalog.ts';
import type { PartnerRoute } from '../../http/route.ts';
import { trackerFields } from './answer.ts';
import { listTrackersOperation } from './operations.ts';

const trackerRow = z.object({
  tracker_id: z.string(),
  name: z.string(),
  origins: z.array(z.string()),
  customer_reference: z.string().nullable(),
  created_at: z.string(),
  disabled_at: z.string().nullable(),
  deleted_at: z.string().nullable(),
});

const listTrackers = (db: DatabasePool, partnerId: string) =>
  db.any(sql.type(trackerRow)`
    select tracker_id, name, origins, customer_reference, created_at, disabled_at, deleted_at
    from read.tracker where partner_id = ${partnerId} and deleted_at is null
    order by created_at, tracker_id`);

/** GET /v1/trackers: the partner's trackers, disabled ones included, deleted ones left out. */
export const listTrackersRoute = (db: DatabasePool, publicUrl: string): PartnerRoute => ({
  method: 'GET',
  path: '/v1/trackers',
  access: 'partner',
  body: 'none',
  bodyLimit: 0,
  operation: listTrackersOperation,
  handle: async (request) => {
    if (request.query !== '') return refusal(request, 'invalid_query');
    const rows = await listTrackers(db, request.caller.partner_id);
    const trackers = rows.map((row) => trackerFields(row, publicUrl));
    return { status: 200, body: JSON.stringify({ trackers, request_id: request.id }) };
  },
});
