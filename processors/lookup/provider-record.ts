import { z } from 'zod';
import type { ProviderRecord } from '../../domain/lookup/answers.ts';
import { companySchema, matchTypeSchema, networkSchema } from '../../domain/lookup/result.ts';

/** PostgreSQL rejects NUL in text, and a lone surrogate is not a valid character. */
const isText = (value: unknown): boolean =>
  typeof value !== 'string' || (value.isWellFormed() && !value.includes('\u0000'));
const isShort = (value: unknown): boolean => jsonBytes(value) <= MAX_FIELD_BYTES;
const all =
  (isValid: (value: unknown) => boolean) =>
  (fields: object | null): boolean =>
    fields === null || Object.values(fields).every(isValid);

/**
 * As JSON. Over time a result may take each field from another record, and what repeats it, sealed, has to fit into an append of
 * 1 MiB: a webhook event that did not would stop the webhooks of all partners.
 */
const MAX_FIELD_BYTES = 16_384;
/** As JSON: many addresses may have the largest record. */
const MAX_RECORD_BYTES = 65_536;
const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const storable = <Fields extends z.ZodType<object>>(fields: Fields) =>
  fields
    .nullable()
    .default(null)
    .refine(all(isText), 'holds text that cannot be stored')
    .refine(all(isShort), 'holds text that is too large');

/** A provider's record of one address (contract, Providers 1); every field may be left out. */
const providerRecordSchema = z.object({
  match_type: matchTypeSchema,
  network: storable(networkSchema),
  company: storable(companySchema),
  fresh_for_days: z.int().min(1).max(3_650).nullable().default(null),
});

/** Validates a record. @throws Error with a one-line reason */
export const parseProviderRecord = (value: unknown): ProviderRecord => {
  const parsed = providerRecordSchema.safeParse(value);
  if (parsed.success) {
    if (jsonBytes(parsed.data) > MAX_RECORD_BYTES) throw new Error('wrong record: it is too large');
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw new Error(`wrong record: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
};
