import { type DatabasePool, sql } from 'slonik';
import { NIL } from 'uuid';
import { z } from 'zod';
import { refusal } from '../../http/error-catalog.ts';
import { ShareUsedUp } from '../../http/failures.ts';
import type { PartnerRoute } from '../../http/route.ts';
import { createSemaphores } from '../../platform/semaphore.ts';
import { trackerFields } from './answer.ts';
import { listTrackersOperation } from './schemas.ts';

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
/** A list of a partner waits for that partner's lists before it for this time, milliseconds: less than a request may take. */
const MAX_WAIT_MS = 4_000;

type TrackerRow = z.infer<typeof trackerRow>;

const readPage = (
  db: DatabasePool,
  partnerId: string,
  after: TrackerRow | undefined,
): Promise<readonly TrackerRow[]> =>
  db.any(sql.type(trackerRow)`
    select tracker_id, name, origins, customer_reference, created_at, disabled_at, deleted_at
    from read.tracker
    where partner_id = ${partnerId} and deleted_at is null
      and (created_at, tracker_id) >
        (${after?.created_at ?? '-infinity'}::timestamptz, ${after?.tracker_id ?? NIL}::uuid)
    order by created_at, tracker_id limit ${PAGE}`);

const listTrackers = async (db: DatabasePool, partnerId: string, publicUrl: string): Promise<string> => {
  const written: string[] = [];
  for (let after: TrackerRow | undefined; ; ) {
    const page = await readPage(db, partnerId, after);
    written.push(...page.map((row) => JSON.stringify(trackerFields(row, publicUrl))));
    after = page.at(-1);
    if (page.length < PAGE) return written.join(',');
  }
};

/** Makes one list of a partner at a time: a thousand trackers may take 13 MB, and fifty such lists at once a gigabyte. */
const createTrackerLists = (db: DatabasePool, publicUrl: string) => {
  const refusal = (why: string): Error => new ShareUsedUp(`lists of the partner's trackers: ${why}`);
  const semaphores = createSemaphores({ limit: 1, maxWaitMs: MAX_WAIT_MS, refusal });
  return (partnerId: string): Promise<string> =>
    semaphores.enter(partnerId, () => listTrackers(db, partnerId, publicUrl));
};

/** GET /v1/trackers: the partner's trackers, disabled ones included, deleted ones left out. */
export const listTrackersRoute = (db: DatabasePool, publicUrl: string): PartnerRoute => {
  const listOf = createTrackerLists(db, publicUrl);
  return {
    method: 'GET',
    path: '/v1/trackers',
    access: 'partner',
    body: 'none',
    bodyLimit: 0,
    operation: listTrackersOperation,
    handle: async (request) => {
      if (request.query !== '') return refusal(request, 'invalid_query');
      const trackers = await listOf(request.caller.partner_id);
      return { status: 200, body: `{"trackers":[${trackers}],"request_id":${JSON.stringify(request.id)}}` };
    },
  };
};
