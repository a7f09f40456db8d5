import { type DatabasePool, sql } from 'slonik';
import { NIL } from 'uuid';
import { z } from 'zod';
import type { PartnerRoute } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { columnsOf } from '../../queries/reads.ts';
import { listTrackersOperation, trackerFields } from './schemas.ts';

const trackerRow = z.object({
  tracker_id: z.string(),
  name: z.string(),
  origins: z.array(z.string()),
  customer_reference: z.string().nullable(),
  created_at: z.string(),
  disabled_at: z.string().nullable(),
  deleted_at: z.string().nullable(),
});

/** Trackers that are read and written at once: each may have 13 KB of origins, and other requests run between two pages. */
const PAGE = 50;

type TrackerRow = z.infer<typeof trackerRow>;

const readPage = (
  db: DatabasePool,
  partnerId: string,
  after: TrackerRow | undefined,
): Promise<readonly TrackerRow[]> =>
  db.any(sql.type(trackerRow)`
    select ${columnsOf(trackerRow)} from read.tracker
    where partner_id = ${partnerId} and deleted_at is null
      and (created_at, tracker_id) >
        (${after?.created_at ?? '-infinity'}::timestamptz, ${after?.tracker_id ?? NIL}::uuid)
    order by created_at, tracker_id limit ${PAGE}`);

async function listTrackers(db: DatabasePool, partnerId: string, publicUrl: string): Promise<string> {
  const written: string[] = [];
  for (let after: TrackerRow | undefined; ; ) {
    const page = await readPage(db, partnerId, after);
    written.push(...page.map((row) => JSON.stringify(trackerFields(row, publicUrl))));
    after = page.at(-1);
    if (page.length < PAGE) return written.join(',');
  }
}

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
    const trackers = await listTrackers(db, request.caller.partner_id, publicUrl);
    return { status: 200, body: `{"trackers":[${trackers}],"request_id":${JSON.stringify(request.id)}}` };
  },
});
