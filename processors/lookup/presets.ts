import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { PROVIDERS_FOLDER } from '../../platform/config/provider-settings.ts';
import { type Mapping, mappingSchema, pointer } from './field-mapping.ts';

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
export const parsePreset = (text: string): Preset => {
  const { about, request, database_types, ...fields } = JSON.parse(text) as Record<string, unknown>;
  const parsed = z
    .object({ about: aboutSchema, fields: mappingSchema })
    .safeParse({ about: { about, request, database_types }, fields });
  if (parsed.success) return { ...parsed.data.about, mapping: parsed.data.fields };
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.slice(1).join('.') ?? ''} ${issue?.message ?? ''}`);
};

/** Reads a mapping file. @throws Error that names the variable or provider, the file and the fault */
export const readPreset = (file: string, of: string): Preset => {
  try {
    return parsePreset(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${of} ${file}: ${(error as Error).message}`);
  }
};

const DATABASES_FOLDER = join(PROVIDERS_FOLDER, 'databases');

/** Returns the packaged mappings for vendors' databases. */
export const databasePresets = (): readonly Preset[] =>
  readdirSync(DATABASES_FOLDER)
    .sort()
    .map((file) => readPreset(join(DATABASES_FOLDER, file), 'the packaged mapping'));

/** Returns the mapping for a database of this type; null if there is none. The longest matching beginning counts. */
export const presetForDatabase = (presets: readonly Preset[], databaseType: string): Preset | null => {
  const matches = presets.flatMap((preset) =>
    (preset.database_types ?? [])
      .filter((beginning) => databaseType.startsWith(beginning))
      .map((beginning) => ({ preset, length: beginning.length })),
  );
  return matches.sort((a, b) => b.length - a.length)[0]?.preset ?? null;
};
