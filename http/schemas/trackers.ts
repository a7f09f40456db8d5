import { z } from 'zod';
import 'zod-openapi';
import { requestId, timestamp } from './common.ts';

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

/** Spec, "Tracker". */
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

/** Spec, "TrackerCreate". */
export const trackerCreate = z
  .strictObject({ name, origins, customer_reference: customerReference.optional() })
  .meta({ id: 'TrackerCreate' });

/** Spec, "TrackerList": disabled ones included, deleted ones left out. */
export const trackerList = z
  .object({ trackers: z.array(trackerBody), request_id: requestId })
  .meta({ id: 'TrackerList' });

/** Spec, "TrackerDeleted". */
export const trackerDeleted = z
  .object({ id: z.uuid(), deleted: z.literal(true), deleted_at: timestamp, request_id: requestId })
  .meta({ id: 'TrackerDeleted' });
