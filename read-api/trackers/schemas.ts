import { z } from 'zod';
import 'zod-openapi';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';

const name = z.string().meta({ description: '1 to 200 characters after trimming.', example: 'Main website' });
const origins = z.array(z.string()).meta({
  description:
    'Where the pixel may run: 1 to 50 serialised origins (`https://host[:port]`; `http://` for localhost and ' +
    'loopback addresses alone) or `https://*.host` for every subdomain.',
  example: ['https://www.example.com', 'https://*.example.com'],
});
const customerReference = z
  .string()
  .nullable()
  .meta({ description: 'A reference of your own, 1 to 200 characters.', example: 'customer-42' });

export const trackerBody = z
  .object({
    id: z.uuid().meta({ description: 'Public; it is no key.' }),
    name,
    origins,
    customer_reference: customerReference,
    created_at: timestamp,
    disabled_at: timestamp.nullable(),
    snippet: z.string().meta({ description: 'The script tag to install.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'Tracker', description: 'A pixel for one customer website.' });
export type TrackerBody = z.output<typeof trackerBody>;

export const trackerCreate = z
  .strictObject({ name, origins, customer_reference: customerReference.optional() })
  .meta({ id: 'TrackerCreate' });

/** Disabled ones included, deleted ones left out. */
export const trackerList = z
  .object({ trackers: z.array(trackerBody), request_id: requestId })
  .meta({ id: 'TrackerList' });

export const trackerDeleted = z
  .object({ id: z.uuid(), deleted: z.literal(true), deleted_at: timestamp, request_id: requestId })
  .meta({ id: 'TrackerDeleted' });

/** What is counted of a tracker (contract, Trackers 2). */
const trackerCounts = {
  capture_requests: count.meta({ description: 'Requests of the pixel, retries included.' }),
  sessions: count.meta({ description: 'New sessions.' }),
  api_requests: count.meta({
    description: 'Successful calls about the tracker, 202s and repeated reads included.',
  }),
  completed_responses: count.meta({ description: 'Those of them that were no 202.' }),
  company_responses: count.meta({ description: 'Those of them that returned a company.' }),
  reveals: count.meta({ description: 'Receipts, by the time they were made; not unique companies.' }),
  billable_reveals: count.meta({ description: 'Reveals with a unit, by the time they completed.' }),
};

export const trackerUsageBody = z
  .object({
    tracker_id: z.uuid(),
    from: timestamp.meta({ description: 'Inclusive.' }),
    to: timestamp.meta({ description: 'Exclusive.' }),
    timezone: z.literal('UTC'),
    totals: z.object(trackerCounts),
    hourly: z
      .array(z.object({ hour: timestamp, ...trackerCounts }))
      .meta({ description: 'By hour; only hours in which anything was counted.' }),
    pending_reveals: count.meta({ description: 'As it stands now, whatever the range.' }),
    metrics_started_at: timestamp.meta({ description: 'When counting began.' }),
    partial_history: z
      .boolean()
      .meta({ description: '`from` is before `metrics_started_at`: zeros before it prove nothing.' }),
    accounting: z.string().meta({ description: 'What is counted, in words.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'TrackerUsage', description: 'Usage of one tracker.' });
export type TrackerUsageBody = z.output<typeof trackerUsageBody>;
