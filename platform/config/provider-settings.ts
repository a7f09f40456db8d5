import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

function canRead(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** The name of a file that can be read. */
export const readableFile = z.string().refine(canRead, {
  error: ({ input }) => `names a file that cannot be read: ${resolve(String(input))}`,
});

/** A whole number, which a message always names with its range: -1 is one too. */
export const wholeNumber = (least = 1, most = 999_999_999) =>
  z
    .string()
    .refine(
      (text) => /^\d+$/.test(text) && Number(text) >= least && Number(text) <= most,
      `is not a whole number from ${least} to ${most}`,
    )
    .transform(Number);
const schema = z.object({
  FILE: readableFile.optional(),
  MAP: readableFile.optional(),
  URL: z
    .string()
    .refine(
      (url) =>
        /^https?:$/.test(URL.parse(url.replaceAll('{ip}', '1'))?.protocol ?? '') && url.includes('{ip}'),
      'is not an http or https URL with {ip} in it',
    )
    .optional(),
  TOKEN: z.string().optional(),
  TIMEOUT_MS: wholeNumber().default(5_000),
  REQUESTS_PER_SECOND: wholeNumber().nullable().default(null),
  REQUESTS_PER_DAY: wholeNumber().nullable().default(null),
});
export type Given = z.output<typeof schema>;

type Setting = keyof Given;
const SETTINGS = Object.keys(schema.shape) as Setting[];

export type Env = Readonly<Record<string, string | undefined>>;

/** The names of a provider's variables. */
export type Variables = Readonly<Record<Setting, string>>;

/** `ipapi-is` → `IPAPI_IS`. */
const prefixOf = (name: string): string =>
  name === 'http' ? 'ENRICHMENT_HTTP' : name.toUpperCase().replaceAll('-', '_');

const variablesOf = (name: string): Variables =>
  Object.fromEntries(SETTINGS.map((setting) => [setting, `${prefixOf(name)}_${setting}`])) as Record<
    Setting,
    string
  >;

/** @returns what is given, or lines that each name a variable */
function readGiven(variables: Variables, env: Env): Given | string[] {
  const given = Object.fromEntries(SETTINGS.map((setting) => [setting, env[variables[setting]]]));
  const { data, error } = schema.safeParse(given);
  return data ?? error.issues.map(({ path, message }) => `${variables[path[0] as Setting]} ${message}`);
}

/** Limits of a provider behind HTTP, over all processes. null: none. */
export interface ProviderLimits {
  readonly requestsPerSecond: number | null;
  readonly requestsPerDay: number | null;
}

/** Settings of a provider that is not the operator's own file. `variables`: their names, for errors. */
interface NamedVariables {
  readonly variables: Variables;
}
interface RequestSettings extends ProviderLimits, NamedVariables {
  readonly token: string | undefined;
  readonly timeoutMs: number;
}

/** What a provider of `ENRICHMENT_PROVIDERS` is, and its settings. */
export type ProviderSettings =
  /** The operator's own file. null: the sample. */
  | { readonly name: string; readonly kind: 'directory'; readonly file: string | null }
  /** A vendor's database. `mapping`: a file that replaces the mapping for the database's type. */
  | ({
      readonly name: string;
      readonly kind: 'file';
      readonly file: string;
      readonly mapping: string | null;
    } & NamedVariables)
  /** A vendor's API, described by a preset: a mapping file with the request. */
  | ({
      readonly name: string;
      readonly kind: 'api';
      readonly preset: string;
      readonly url: string | undefined;
    } & RequestSettings)
  /** Any API that answers with records, or whose answers the operator's mapping translates. */
  | ({
      readonly name: string;
      readonly kind: 'http';
      readonly url: string;
      readonly mapping: string | null;
    } & RequestSettings);

/** The folder of the mapping files that come with the program. */
export const PROVIDERS_FOLDER = fileURLToPath(
  new URL('../../processors/lookup/providers/data', import.meta.url),
);
/** The folder of the presets of APIs, one file a vendor, named as the provider. */
const PRESETS_FOLDER = join(PROVIDERS_FOLDER, 'apis');

export const presetNames = (): string[] =>
  readdirSync(PRESETS_FOLDER)
    .map((file) => basename(file, '.json'))
    .sort();

export const isProviderName = (name: string): boolean => /^[a-z][a-z0-9-]{0,39}$/.test(name);

/**
 * Reads the settings of the named providers from variables that begin with the provider's name.
 * @param known names of the service's own variables, which no provider's setting may have
 * @returns the settings, or lines that each name a variable
 */
export function readProviderSettings(
  names: readonly string[],
  env: Env,
  known: readonly string[],
): { readonly settings: ProviderSettings[]; readonly problems: string[] } {
  const settings: ProviderSettings[] = [];
  const problems = names
    .filter((name, index) => names.indexOf(name) !== index)
    .map((name) => `ENRICHMENT_PROVIDERS names ${name} twice`);
  for (const name of new Set(names)) {
    const read = readOne(name, env, known);
    if (Array.isArray(read)) problems.push(...read);
    else settings.push(read);
  }
  // Wrong settings of http stop the start even if it is not named, as those of the service do.
  const http = names.includes('http') ? [] : readGiven(variablesOf('http'), env);
  if (Array.isArray(http)) problems.push(...http);
  return { settings, problems };
}

function readOne(name: string, env: Env, known: readonly string[]): ProviderSettings | string[] {
  if (name === 'directory') return { name, kind: 'directory', file: env.ENRICHMENT_DIRECTORY ?? null };
  const variables = variablesOf(name);
  const clash = Object.values(variables).find((one) => known.includes(one));
  if (clash !== undefined) {
    return [`ENRICHMENT_PROVIDERS names ${name}, but ${clash} is a variable of the service`];
  }
  const given = readGiven(variables, env);
  if (Array.isArray(given)) return given;
  if (name === 'http') return httpSettings(given, variables);
  return given.FILE === undefined
    ? apiSettings(name, given, variables)
    : fileSettings(name, given.FILE, given, variables);
}

function httpSettings(given: Given, variables: Variables): ProviderSettings | string[] {
  const { URL: url, MAP: mapping = null } = given;
  if (url === undefined) return [`${variables.URL} is not set, but ENRICHMENT_PROVIDERS names http`];
  return { name: 'http', kind: 'http', url, mapping, ...requestSettings(given, variables) };
}

function fileSettings(
  name: string,
  file: string,
  given: Given,
  variables: Variables,
): ProviderSettings | string[] {
  const ofApis = (['URL', 'TOKEN', 'REQUESTS_PER_SECOND', 'REQUESTS_PER_DAY'] as const).find(
    (setting) => given[setting] != null,
  );
  if (ofApis !== undefined) return [`${variables[ofApis]} is for an API, but ${variables.FILE} is set`];
  return { name, kind: 'file', file, mapping: given.MAP ?? null, variables };
}

function apiSettings(name: string, given: Given, variables: Variables): ProviderSettings | string[] {
  const packaged = join(PRESETS_FOLDER, `${name}.json`);
  if (given.MAP === undefined && !existsSync(packaged)) {
    return [
      `ENRICHMENT_PROVIDERS names ${name}, which is none of directory, http, ${presetNames().join(', ')}: set ` +
        `${variables.FILE} to a vendor's database, or ${variables.MAP} to a preset of your own`,
    ];
  }
  const request = requestSettings(given, variables);
  return { name, kind: 'api', preset: given.MAP ?? packaged, url: given.URL, ...request };
}

const requestSettings = (given: Given, variables: Variables): RequestSettings => ({
  token: given.TOKEN,
  timeoutMs: given.TIMEOUT_MS,
  variables,
  requestsPerSecond: given.REQUESTS_PER_SECOND,
  requestsPerDay: given.REQUESTS_PER_DAY,
});
