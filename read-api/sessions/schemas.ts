import { z } from 'zod';
import 'zod-openapi';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';

export const customParameters = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .meta({
    id: 'CustomParameters',
    description:
      'Labels of the installer, which a visitor can alter. At most 32, at most 2,048 bytes as JSON. Names: a letter, then ' +
      'letters, digits, `_`, `.` or `-`, at most 64 characters; `constructor` and `prototype` are reserved. Values: a ' +
      'string of at most 512 characters, a number, a boolean or null.',
    example: { campaign: 'spring', step: 2 },
  });

const session = z.object({
  session_id: z.uuid(),
  tracker_id: z.uuid(),
  customer_reference: z.string().nullable().meta({ description: "The tracker's." }),
  custom: customParameters.optional(),
  visitor_country: z.string().nullable().meta({
    description:
      'ISO 3166-1 alpha-2, estimated from the address of the visitor; VPNs affect it. null: unknown. Not headquarters.',
    example: 'DE',
  }),
  first_seen_at: timestamp,
  last_seen_at: timestamp,
  expires_at: timestamp.meta({ description: '30 days after `first_seen_at`.' }),
});

/** A session as it stands in the feed. */
export type SessionBody = z.output<typeof session>;

export const sessionPreview = session
  .extend({ request_id: requestId.optional() })
  .meta({ id: 'SessionPreview', description: 'One visit that a pixel recorded. Previewing it is free.' });

export const sessionFeed = z
  .object({
    sessions: z.array(sessionPreview),
    next_cursor: z.string().meta({ description: 'Where to go on, now or later; there always is one.' }),
    has_more: z.boolean().meta({ description: 'Whether there is more already.' }),
    request_id: requestId,
  })
  .meta({ id: 'SessionFeed' });

/** What a pixel sends. */
export const captureBody = z
  .strictObject({
    tracker_id: z.uuid(),
    token: z.uuid().meta({ description: "The browser tab's, renewed after 30 minutes without a visit." }),
    visit_id: z.uuid().meta({ description: 'New for each page view; the same again is a retry.' }),
    custom: customParameters.optional(),
  })
  .meta({ id: 'Capture', description: 'One page view.' });
