import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

const whole = (fallback: number, least = 1) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'is not a whole number')
    .transform(Number)
    .refine((value) => value >= least, `is less than ${least}`)
    .default(fallback);
const fileName = z.string().min(1).optional();
const list = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    );
const isCidr = (text: string): boolean => ipaddr.isValidCIDR(text);
const cidrs = (fallback: string) =>
  list(fallback).refine((blocks) => blocks.every(isCidr), 'is not a comma list of CIDR blocks');
const providers = ['directory', 'http'] as const;

/** Every variable that the service reads, with its default (decisions, "Running it"). */
const environment = z.object({
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: whole(3000, 0).refine((port) => port <= 65_535, 'is no port'),
  OPS_HOST: z.string().min(1).default('127.0.0.1'),
  OPS_PORT: whole(3001, 0).refine((port) => port <= 65_535, 'is no port'),
  PUBLIC_URL: z
    .url({ protocol: /^https?$/, error: 'is not an http or https URL' })
    .transform((url) => url.replace(/\/$/, ''))
    .optional(),
  DATA_DIR: z.string().min(1).default('.doorplate'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'is not a postgres:// URL' }).optional(),
  EVENTSTORE_URL: z
    .string()
    .regex(/^(esdb|kurrentdb|eventstore)(\+discover)?:\/\/\S+$/, 'is not an esdb:// URL')
    .optional(),
  MASTER_KEY: z
    .string()
    .refine((text) => Buffer.from(text, 'base64').length === 32, 'is not 32 bytes in base64')
    .optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  TRUSTED_PROXIES: cidrs('127.0.0.0/8,::1/128'),

  ENRICHMENT_PROVIDERS: list('directory').pipe(
    z.array(z.enum(providers, 'names a provider that is neither directory nor http')).min(1),
  ),
  ENRICHMENT_DIRECTORY: fileName,
  ENRICHMENT_HTTP_URL: z
    .string()
    .refine(
      (url) => URL.canParse(url.replaceAll('{ip}', '1')) && url.includes('{ip}'),
      'is not a URL with {ip} in it',
    )
    .optional(),
  ENRICHMENT_HTTP_TOKEN: z.string().min(1).optional(),
  ENRICHMENT_HTTP_TIMEOUT_MS: whole(5_000),
  ENRICHMENT_HTTP_MAP: fileName,
  COUNTRY_MMDB: fileName,

  API_REQUESTS_PER_SECOND: whole(10_000),
  LOOKUP_CAPACITY: whole(256),
  ENRICHMENT_INTAKE_PER_MINUTE: whole(900),
  ENRICHMENT_OUTSTANDING: whole(100_000),
  REVEALS_PER_SECOND: whole(100),
  TRACKERS_PER_PARTNER: whole(1_000),
  CAPTURES_PER_SECOND: whole(200),
  CAPTURES_PER_SECOND_PER_TRACKER: whole(100),
  CAPTURES_PER_SECOND_PER_VISITOR: whole(10),

  RETRY_BASE_SECONDS: z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is not a number of seconds')
    .transform(Number)
    .refine((seconds) => seconds > 0, 'is not above 0')
    .default(15),
});

export type Config = z.output<typeof environment> & {
  /** Variables that are for development and tests alone and are set. */
  readonly unsafe: readonly string[];
};

const FOR_TESTS = ['RETRY_BASE_SECONDS'] as const;

/** A configuration that cannot be used; `lines` name each variable at fault. */
export class ConfigError extends Error {
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/**
 * Reads and checks the whole configuration at once. An empty variable counts as unset.
 * @throws ConfigError
 */
export const loadConfig = (env: NodeJS.ProcessEnv): Config => {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(given);
  const lines = parsed.success
    ? problemsAcross(parsed.data)
    : parsed.error.issues.map((issue) => `${issue.path[0]?.toString() ?? ''} ${issue.message}`);
  if (!parsed.success || lines.length > 0) throw new ConfigError(lines);
  return { ...parsed.data, unsafe: FOR_TESTS.filter((name) => given[name] !== undefined) };
};

const problemsAcross = (config: z.output<typeof environment>): string[] => {
  const problems: string[] = [];
  if (config.ENRICHMENT_PROVIDERS.includes('http') && !config.ENRICHMENT_HTTP_URL) {
    problems.push('ENRICHMENT_HTTP_URL is not set, but ENRICHMENT_PROVIDERS names http');
  }
  for (const name of ['ENRICHMENT_DIRECTORY', 'ENRICHMENT_HTTP_MAP', 'COUNTRY_MMDB'] as const) {
    const file = config[name];
    if (file && !canRead(file)) problems.push(`${name} names a file that cannot be read: ${resolve(file)}`);
  }
  return problems;
};

const canRead = (file: string): boolean => {
  try {
    readFileSync(file);
    return true;
  } catch {
    return false;
  }
};
