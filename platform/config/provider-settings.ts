import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const SETTINGS = [
  'FILE',
  'MAP',
  'URL',
  'TOKEN',
  'TIMEOUT_MS',
  'REQUESTS_PER_SECOND',
  'REQUESTS_PER_DAY',
] as const;
type Setting = (typeof SETTINGS)[number];

const whole = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'is not a whole number above 0')
  .transform(Number);
const schema = z.object({
  FILE: z.string().optional(),
  MAP: z.string().optional(),
  URL: z
    .string()
    .refine(
      (url) => URL.canParse(url.replaceAll('{ip}', '1')) && url.includes('{ip}'),
      'is not a URL with {ip} in it',
    )
    .optional(),
  TOKEN: z.string().optional(),
  TIMEOUT_MS: whole.default(5_000),
  REQUESTS_PER_SECOND: whole.nullable().default(null),
  REQUESTS_PER_DAY: whole.nullable().default(null),
});
export type Given = z.output<typeof schema>;

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

const readGiven = (name: string, env: Env): Given | { readonly problems: string[] } => {
  const variables = variablesOf(name);
  const parsed = schema.safeParse(
    Object.fromEntries(SETTINGS.map((setting) => [setting, env[variables[setting]]])),
  );
  if (!parsed.success) {
    return {
      problems: parsed.error.issues.map((one) => `${variables[one.path[0] as Setting]} ${one.message}`),
    };
  }
  const unreadable = (['FILE', 'MAP'] as const).flatMap((setting) => {
    const file = parsed.data[setting];
    if (file === undefined || canRead(file)) return [];
    return [`${variables[setting]} names a file that cannot be read: ${resolve(file)}`];
  });
  return unreadable.length > 0 ? { problems: unreadable } : parsed.data;
};

export const canRead = (file: string): boolean => {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

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
export const readProviderSettings = (
  names: readonly string[],
  env: Env,
  known: readonly string[],
): { readonly settings: ProviderSettings[]; readonly problems: string[] } => {
  const settings: ProviderSettings[] = [];
  const problems = names
    .filter((name, index) => names.indexOf(name) !== index)
    .map((name) => `ENRICHMENT_PROVIDERS names ${name} twice`);
  for (const name of new Set(names)) {
    const read = readOne(name, env, known);
    if ('problems' in read) problems.push(...read.problems);
    else settings.push(read);
  }
  // Wrong settings of http stop the start even if it is not named, as those of the service do.
  if (!names.includes('http')) {
    const http = readGiven('http', env);
    if ('problems' in http) problems.push(...http.problems);
  }
  return { settings, problems };
};

const readOne = (
  name: string,
  env: Env,
  known: readonly string[],
): ProviderSettings | { readonly problems: string[] } => {
  if (name === 'directory') return { name, kind: 'directory', file: env.ENRICHMENT_DIRECTORY ?? null };
  const variables = variablesOf(name);
  const clash = Object.values(variables).find((one) => known.includes(one));
  if (clash !== undefined) {
    return { problems: [`ENRICHMENT_PROVIDERS names ${name}, but ${clash} is a variable of the service`] };
  }
  const given = readGiven(name, env);
  if ('problems' in given) return given;
  if (name === 'http') return httpSettings(name, given, variables);
  return given.FILE === undefined
    ? apiSettings(name, given, variables)
    : fileSettings(name, given, variables);
};

const httpSettings = (name: string, given: Given, variables: Variables) => {
  if (given.URL === undefined) {
    return { problems: [`${variables.URL} is not set, but ENRICHMENT_PROVIDERS names http`] };
  }
  const request = requestSettings(given, variables);
  return { name, kind: 'http', url: given.URL, mapping: given.MAP ?? null, ...request } as const;
};

const fileSettings = (name: string, given: Given, variables: Variables) => {
  const ofApis = (['URL', 'TOKEN', 'REQUESTS_PER_SECOND', 'REQUESTS_PER_DAY'] as const).find(
    (setting) => given[setting] != null,
  );
  if (ofApis !== undefined) {
    return { problems: [`${variables[ofApis]} is for an API, but ${variables.FILE} is set`] };
  }
  return { name, kind: 'file', file: given.FILE ?? '', mapping: given.MAP ?? null, variables } as const;
};

const apiSettings = (name: string, given: Given, variables: Variables) => {
  const packaged = join(PRESETS_FOLDER, `${name}.json`);
  if (given.MAP === undefined && !existsSync(packaged)) {
    return {
      problems: [
        `ENRICHMENT_PROVIDERS names ${name}, which is none of directory, http, ${presetNames().join(', ')}: set ` +
          `${variables.FILE} to a vendor's database, or ${variables.MAP} to a preset of your own`,
      ],
    };
  }
  const request = requestSettings(given, variables);
  return { name, kind: 'api', preset: given.MAP ?? packaged, url: given.URL, ...request } as const;
};

const requestSettings = (given: Given, variables: Variables): RequestSettings => ({
  token: given.TOKEN,
  timeoutMs: given.TIMEOUT_MS,
  variables,
  requestsPerSecond: given.REQUESTS_PER_SECOND,
  requestsPerDay: given.REQUESTS_PER_DAY,
});
