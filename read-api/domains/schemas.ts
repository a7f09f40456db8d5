import { z } from 'zod';
import 'zod-openapi';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';

const hostname = z.string().meta({
  description: 'Lower case, IDNs as punycode, at least two labels, no trailing dot; no address.',
  example: 'visits.example.com',
});

export const domainBody = z
  .object({
    id: z.uuid(),
    tracker_id: z.uuid(),
    hostname,
    cname_target: z.string().meta({
      description: "What the host name's CNAME, or the last of a chain of them, must name.",
      example: 'doorplate.example',
    }),
    verification: z
      .object({ type: z.literal('TXT'), name: z.string(), value: z.string() })
      .nullable()
      .meta({
        description:
          'The DNS record that shows that the name is yours: another partner claims it too, or had it. With it in ' +
          'place the name becomes active once its CNAME is right. null: the CNAME is enough.',
      }),
    status: z.enum(['pending', 'active', 'failed']).meta({
      description:
        '`pending`: looked for until it points here, for at most 7 days. `active`: it collects. `failed`: it did not ' +
        'point here in time, or no longer does for 3 days; POST it again.',
    }),
    created_at: timestamp,
    activated_at: timestamp.nullable(),
    checked_at: timestamp.nullable().meta({ description: 'When it was last looked for.' }),
    last_error: z
      .string()
      .nullable()
      .meta({
        description:
          'Why it does not point here: `no_such_name`, `no_cname`, `points_elsewhere`, `cname_loop`, ' +
          '`cname_too_long`, `dns_timeout`, `dns_error`; `not_verified`: the CNAME is right and the TXT record of ' +
          '`verification` is missing; `claimed_elsewhere`: another partner showed that the name is its own; null: it does, or nobody has looked yet.',
      }),
    snippet: z
      .string()
      .nullable()
      .meta({ description: 'The script tag on this host; null until it is active.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'CustomDomain', description: "A host name of a customer's own for a tracker's pixel." });
export type DomainBody = z.output<typeof domainBody>;

export const domainCreate = z.strictObject({ hostname }).meta({ id: 'CustomDomainCreate' });

/** At most ten, so that all are told at once. */
export const domainList = z
  .object({ domains: z.array(domainBody), request_id: requestId })
  .meta({ id: 'CustomDomainList' });

export const domainDeleted = z
  .object({ id: z.uuid(), deleted: z.literal(true), deleted_at: timestamp, request_id: requestId })
  .meta({ id: 'CustomDomainDeleted' });
