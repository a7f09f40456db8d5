import { z } from 'zod';
import type { ProviderRecord } from '../../domain/lookup/answers.ts';
import { companySchema, matchTypeSchema, networkSchema } from '../../domain/lookup/result.ts';

/** PostgreSQL rejects NUL in text, and a lone surrogate is not a valid character. */
const isText = (value: unknown): boolean =>
  typeof value !== 'string' || (value.isWellFormed() && !value.includes('\u0000'));
const allText = (fields: object | null): boolean => fields === null || Object.values(fields).every(isText);

/** A provider's record of one address (contract, Providers 1); every field may be left out. */
const providerRecordSchema = z.object({
  match_type: matchTypeSchema,
  network: networkSchema.nullable().default(null).refine(allText, 'holds text that cannot be stored'),
  company: companySchema.nullable().default(null).refine(allText, 'holds text that cannot be stored'),
  fresh_for_days: z.int().min(1).max(3_650).nullable().default(null),
});

/** As JSON. A result may combine several records, and events repeat it, sealed, within one append of 1 MiB. */
const MAX_RECORD_BYTES = 65_536;

/** Validates a record. @throws Error with a one-line reason */
export const parseProviderRecord = (value: unknown): ProviderRecord => {
  const parsed = providerRecordSchema.safeParse(value);
  if (parsed.success) {
    if (Buffer.byteLength(JSON.stringify(parsed.data)) > MAX_RECORD_BYTES)
      throw new Error('wrong record: it is too large');
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw new Error(`wrong record: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
};
