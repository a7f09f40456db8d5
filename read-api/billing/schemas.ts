import 'zod-openapi';
import { z } from 'zod';
import { keyedCodes } from '../../http/contract/responses.ts';
import { count, requestId } from '../../http/contract/schemas/common.ts';
import { CURSOR, operationsOf, REQUEST, storableJson } from '../operation.ts';

const operation = operationsOf('Billing');

export const MAX_ENTRIES = 500;
export const DEFAULT_ENTRIES = 100;

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const units = z.union([z.literal(0), z.literal(1)]);

const ledgerEntry = z
  .object({
    number: count.meta({ description: 'From 0, without a gap, over all months.' }),
    partner_id: z.uuid(),
    reveal_id: z.uuid(),
    tracker_id: z.uuid(),
    key_id: z.string().nullable().meta({ description: 'null: a user of the dashboard asked.' }),
    user_id: z.string().nullable().meta({ description: 'null: a key asked.' }),
    completed_at: z.iso
      .datetime()
      .meta({ description: 'The entry belongs to the UTC month of this instant.' }),
    units: units.meta({ description: '1: the result held something.' }),
    position: z
      .string()
      .regex(/^\d{1,20}$/)
      .meta({ description: 'Of the completion in the log; ascending.' }),
    previous: digest.meta({ description: 'Digest of the entry before; 64 zeros in the first.' }),
    digest: digest.meta({
      description: 'SHA-256 of the ten fields before it, a line each; null is an empty line.',
    }),
  })
  .meta({ id: 'LedgerEntry', description: 'One completed reveal.' });

const ledgerAnchor = z
  .object({
    partner_id: z.uuid(),
    made_at: z.iso.datetime(),
    entries: count,
    units: count,
    head_digest: digest.meta({ description: 'Digest of the last entry at that time.' }),
    signature: z
      .base64()
      .meta({ description: 'Ed25519, of six lines: `doorplate anchor 1` and the five fields above.' }),
    public_key: z.base64().meta({ description: 'SubjectPublicKeyInfo.' }),
  })
  .meta({
    id: 'LedgerAnchor',
    description: 'What the whole ledger was at one moment, signed. One a UTC day is kept.',
  });

const ledgerPage = z
  .object({
    month: z.string().meta({ description: 'UTC, `YYYY-MM`.', example: '2026-03' }),
    entries: z.array(ledgerEntry).meta({ description: "Of the month, in the ledger's order." }),
    totals: z.object({ entries: count, units: count }).meta({ description: 'Of the whole month so far.' }),
    head: z
      .object({ number: count, digest })
      .nullable()
      .meta({ description: 'The last entry of the whole ledger; null: it has none.' }),
    anchor: ledgerAnchor.nullable().meta({ description: 'The newest; null: none was made yet.' }),
    next_cursor: z.string().meta({ description: 'Where to go on, now or later; there always is one.' }),
    has_more: z.boolean().meta({ description: 'Whether the month has more already.' }),
    request_id: requestId,
  })
  .meta({ id: 'LedgerPage' });
export type LedgerPage = z.output<typeof ledgerPage>;

const first = {
  number: 0,
  partner_id: '6f1f8f0e-3b0a-5d3c-9a57-2f6f1c0b7a11',
  reveal_id: '0b9ad6f2-6a43-5c0e-8d0d-4d5f6f0a9c21',
  tracker_id: '0192f3a4-7c1d-7b55-9e21-5a0c3d7e8f90',
  key_id: 'key_4f7c2a',
  user_id: null,
  completed_at: '2026-03-14T12:30:00.250Z',
  units: 1 as const,
  position: '4711',
  previous: '0'.repeat(64),
  digest: 'e3ddeb95163ccc112665898b744516ac227dcec05b67da33a795765df3a42462',
};

/** GET /v1/ledger */
export const getLedgerOperation = operation('readLedger', {
  summary: 'The entries that you are billed by',
  addition: true,
  description:
    "The partner's completed reveals of a UTC month, each with the digest that chains it to the " +
    'one before, so that a program of yours can check the bill. Reading it is free and is not counted.',
  requestParams: {
    query: z.object({
      month: z
        .string()
        .regex(/^\d{4}-\d{2}$/)
        .optional()
        .meta({ description: 'UTC, `YYYY-MM`; the current one by default.' }),
      cursor: z.string().optional().meta({ description: '`next_cursor` of a page of the same month.' }),
      limit: z
        .int()
        .min(1)
        .max(MAX_ENTRIES)
        .optional()
        .meta({ description: `Entries on a page; ${DEFAULT_ENTRIES} by default.` }),
    }),
  },
  responses: {
    '200': storableJson('A page, which may be empty.', ledgerPage, {
      one: {
        month: '2026-03',
        entries: [first],
        totals: { entries: 1, units: 1 },
        head: { number: 0, digest: first.digest },
        anchor: null,
        next_cursor: CURSOR,
        has_more: false,
        request_id: REQUEST,
      },
    }),
  },
  codes: ['invalid_range', 'invalid_cursor', ...keyedCodes],
});
