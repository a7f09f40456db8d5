import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Env, type Given, readGiven, type Variables, variablesOf } from './provider-variables.ts';

/** Limits of a provider behind HTTP, over all processes. null: none. */
export interface ProviderLimits {
  readonly requestsPerSecond: number | null;
  readonly requestsPerDay: number | null;
}

/** The names of the provider's variables, for errors. */
interface NamedVariables {
  readonly variables: Variables;
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
      readonly token: string | undefined;
      readonly timeoutMs: number;
    } & ProviderLimits &
      NamedVariables)
  /** Any API that answers with records, or whose answers the operator's mapping translates. */
  | ({
      readonly name: string;
      readonly kind: 'http';
      readonly url: string;
      readonly token: string | undefined;
      readonly timeoutMs: number;
      readonly mapping: string | null;
    } & ProviderLimits &
      NamedVariables);

/** The folder of the mapping files that come with the program. */
export const PROVIDERS_FOLDER = fileURLToPath(new URL('../data/providers', import.meta.url));
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
  return {
    name,
    kind: 'http',
    url: given.URL,
    token: given.TOKEN,
    timeoutMs: given.TIMEOUT_MS,
    mapping: given.MAP ?? null,
    ...limitsOf(given),
    variables,
  } as const;
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
  return {
    name,
    kind: 'api',
    preset: given.MAP ?? packaged,
    url: given.URL,
    token: given.TOKEN,
    timeoutMs: given.TIMEOUT_MS,
    ...limitsOf(given),
    variables,
  } as const;
};

const limitsOf = (given: Given): ProviderLimits => ({
  requestsPerSecond: given.REQUESTS_PER_SECOND,
  requestsPerDay: given.REQUESTS_PER_DAY,
});
