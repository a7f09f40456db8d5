import { z } from 'zod';
import { companySchema, networkSchema } from '../../domain/lookup/result.ts';

const pointer = z.string().regex(/^(\/([^~/]|~[01])*)*$/, 'is not a JSON Pointer');
const fields = [
  'match_type',
  'fresh_for_days',
  ...Object.keys(networkSchema.shape).map((name) => `network.${name}`),
  ...Object.keys(companySchema.shape).map((name) => `company.${name}`),
];

/** Maps our fields (`match_type`, `company.name`, `network.is_isp` …) to JSON Pointers (RFC 6901) in a vendor's response. */
export const mappingSchema = z.partialRecord(z.enum(fields), pointer);
export type Mapping = z.output<typeof mappingSchema>;

const resolve = (document: unknown, path: string): unknown => {
  let value: unknown = document;
  for (const token of path.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  return value ?? null;
};

/**
 * Converts a vendor's response to an unvalidated record. If `match_type` is not mapped, a company name implies
 * `company`, and `is_isp` implies `isp`.
 */
export const applyMapping = (mapping: Mapping, answer: unknown): unknown => {
  const network: Record<string, unknown> = {};
  const company: Record<string, unknown> = {};
  const record: Record<string, unknown> = { network, company };
  for (const [field, path] of Object.entries(mapping)) {
    const [group = '', name] = field.split('.');
    const target = name === undefined ? record : group === 'network' ? network : company;
    target[name ?? group] = resolve(answer, path as string);
  }
  const implied = company.name ? 'company' : network.is_isp === true ? 'isp' : 'unclassified';
  return { ...record, match_type: mapping.match_type === undefined ? implied : record.match_type };
};
