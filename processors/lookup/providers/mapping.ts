import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { companySchema, networkSchema } from '../../../domain/lookup/result.ts';
import { PROVIDERS_FOLDER } from '../../../platform/config/provider-settings.ts';
import { readText } from '../../../platform/text-file.ts';

const pointer = z.string().regex(/^(\/([^~/]|~[01])*)*$/, 'is not a JSON Pointer');
const fields = [
  'match_type',
  'fresh_for_days',
  ...Object.keys(networkSchema.shape).map((name) => `network.${name}`),
  ...Object.keys(companySchema.shape).map((name) => `company.${name}`),
];

const constant = z.union([z.string(), z.boolean()]);
/** A JSON Pointer; or one whose value is translated (unlisted values are unknown), replaced, or gets a prefix. */
const source = z.union([
  pointer,
  z.strictObject({ from: pointer, values: z.record(z.string(), constant) }),
  z.strictObject({ from: pointer, value: constant }),
  z.strictObject({ from: pointer, prefix: z.string() }),
]);
type Source = z.output<typeof source>;

/**
 * Maps our fields (`match_type`, `company.name`, `network.is_isp` …) to JSON Pointers (RFC 6901) in a vendor's response. Of
 * several sources the first that has a value counts.
 */
export const mappingSchema = z.partialRecord(z.enum(fields), z.union([source, z.array(source).min(1)]));
export type Mapping = z.output<typeof mappingSchema>;

/** Returns the value at a JSON Pointer; null if there is none. */
export function valueAt(document: unknown, path: string): unknown {
  let value: unknown = document;
  for (const token of path.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  return value ?? null;
}

function valueFrom(from: Source, answer: unknown): unknown {
  if (typeof from === 'string') return valueAt(answer, from);
  const value = valueAt(answer, from.from);
  if (value === null || value === '') return null;
  if ('value' in from) return from.value;
  if ('prefix' in from) return `${from.prefix}${String(value)}`;
  return Object.hasOwn(from.values, String(value)) ? from.values[String(value)] : null;
}

function firstOf(from: Source | readonly Source[], answer: unknown): unknown {
  if (typeof from === 'string' || 'from' in from) return valueFrom(from, answer);
  for (const one of from) {
    const value = valueFrom(one, answer);
    if (value !== null && value !== '') return value;
  }
  return null;
}

type Fields = Record<string, unknown>;

function applyFields(mapping: Mapping, answer: unknown) {
  const network: Fields = {};
  const company: Fields = {};
  const record: Fields = {};
  for (const [field, from] of Object.entries(mapping)) {
    const [group = '', name] = field.split('.');
    const target = name === undefined ? record : group === 'network' ? network : company;
    target[name ?? group] = firstOf(from as Source | Source[], answer);
  }
  return { ...record, network, company } as Fields & { network: Fields; company: Fields };
}

/**
 * Converts a vendor's response to an unvalidated record. If `match_type` is not mapped, a company name implies
 * `company`, and `is_isp` implies `isp`.
 */
export function applyMapping(mapping: Mapping, answer: unknown): unknown {
  const record = applyFields(mapping, answer);
  return mapping.match_type === undefined ? { ...record, match_type: impliedMatch(record) } : record;
}

const impliedMatch = ({ company, network }: { company: Fields; network: Fields }): string =>
  company.name ? 'company' : network.is_isp === true ? 'isp' : 'unclassified';

/**
 * Does the same for vendors whose answers are mixed with others' (docs/providers.md): empty text is unknown; a company has
 * to be stated and named; and of a network that is not a company's only the name of its operator is kept, because other
 * fields would fill the gaps of another vendor's company.
 */
export function applyVendorMapping(mapping: Mapping, answer: unknown): unknown {
  const { network, company, match_type = null, ...rest } = applyFields(mapping, answer);
  const known = { ...rest, network: withoutEmpty(network), company: withoutEmpty(company) };
  const { name = null, website = null } = known.company;
  if (match_type === 'company' && name !== null) return { ...known, match_type };
  const isIsp = match_type === 'isp' || (match_type === null && known.network.is_isp === true);
  const onlyWebsite = website === null ? null : { website };
  return {
    ...known,
    match_type: isIsp ? 'isp' : 'unclassified',
    company: name === null ? onlyWebsite : { name },
  };
}

const withoutEmpty = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value === '' ? null : value]));

/** How a vendor's API is called. `{ip}` and `{token}` stand for the address and the token. */
const requestSchema = z.strictObject({
  url: z.string().refine((url) => url.includes('{ip}'), 'has no {ip} in it'),
  headers: z.record(z.string(), z.string()).default({}),
  /** Where the answer names the address: an answer that names another one, or none, is a failure. */
  answers_for: pointer.optional(),
  /** The status that says that the address is unknown. Default: none, since an unknown address is a 200 without fields. */
  unknown_status: z.int().optional(),
});
export type PresetRequest = z.output<typeof requestSchema>;

const aboutSchema = z.object({
  about: z.string().optional(),
  request: requestSchema.optional(),
  /** Beginnings of the `database_type` in the metadata of the databases that it maps. */
  database_types: z.array(z.string().min(1)).optional(),
});

/** A mapping file: the fields, and beside them what they are of. */
export type Preset = z.output<typeof aboutSchema> & { readonly mapping: Mapping };

/** Parses a mapping file. @throws Error with a one-line reason */
export function parsePreset(text: string): Preset {
  const { about, request, database_types, ...fields } = JSON.parse(text) as Record<string, unknown>;
  const parsed = z
    .object({ about: aboutSchema, fields: mappingSchema })
    .safeParse({ about: { about, request, database_types }, fields });
  if (parsed.success) return { ...parsed.data.about, mapping: parsed.data.fields };
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.slice(1).join('.') ?? ''} ${issue?.message ?? ''}`);
}

/** Reads a mapping file. @throws Error that names the variable or provider, the file and the fault */
export function readPreset(file: string, of: string): Preset {
  try {
    return parsePreset(readText(file));
  } catch (error) {
    throw new Error(`${of} ${file}: ${(error as Error).message}`);
  }
}

const DATABASES_FOLDER = join(PROVIDERS_FOLDER, 'databases');

/** Returns the packaged mappings for vendors' databases. */
export const databasePresets = (): readonly Preset[] =>
  readdirSync(DATABASES_FOLDER)
    .sort()
    .map((file) => readPreset(join(DATABASES_FOLDER, file), 'the packaged mapping'));

/** Returns the mapping for a database of this type; null if there is none. The longest matching beginning counts. */
export function presetForDatabase(presets: readonly Preset[], databaseType: string): Preset | null {
  const matches = presets.flatMap((preset) =>
    (preset.database_types ?? [])
      .filter((beginning) => databaseType.startsWith(beginning))
      .map((beginning) => ({ preset, length: beginning.length })),
  );
  return matches.sort((a, b) => b.length - a.length)[0]?.preset ?? null;
}
