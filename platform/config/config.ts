import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { hostName } from '../../domain/kernel/text.ts';
import { isDemoFolder } from './data-folder.ts';
import { readDatabaseUrl } from './database-url.ts';
import {
  isProviderName,
  type ProviderSettings,
  readableFile,
  readProviderSettings,
  wholeNumber,
} from './provider-settings.ts';

const whole = (fallback: number, ...range: Parameters<typeof wholeNumber>) =>
  wholeNumber(...range).default(fallback);
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
const ESCAPES = 'in a password @ is %40, / is %2F, ? is %3F, # is %23 and % is %25';
const isHost = (name: string): boolean => hostName(name) === name;
const isCidr = (text: string): boolean => ipaddr.isValidCIDR(text);
const cidrs = (fallback: string) =>
  list(fallback).refine((blocks) => blocks.every(isCidr), 'is not a comma list of CIDR blocks');
const masterKey = z
  .string()
  .refine((text) => Buffer.from(text, 'base64').length === 32, 'is not 32 bytes in base64')
  .optional();
/** `address` or `address:port`, IPv6 in brackets with a port. */
function isDnsServer(text: string): boolean {
  const [, address = text, port = '53'] =
    /^(\d+(?:\.\d+){3})(?::(\d+))?$/.exec(text) ?? /^\[(.+)\](?::(\d+))?$/.exec(text) ?? [];
  return isIP(address) !== 0 && isPort(port);
}
const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535;
const httpUrl = z.url({ protocol: /^https?$/, error: 'is not an http or https URL', abort: true });
/** An origin: snippets of anything else name what is not served. */
const publicUrl = httpUrl
  .refine((text) => {
    const { username, password, pathname, hostname } = URL.parse(text) ?? { pathname: '' };
    return pathname === '/' && !username && !password && !hostname?.endsWith('.') && !/[?#]/.test(text);
  }, 'is more than a scheme, a host without a dot at its end, and perhaps a port')
  .transform((text) => new URL(text).origin);
/** A price in millionths of a currency's unit, so that sums are integers. */
const price = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,6})? [A-Z]{3}$/, 'is not a price such as 0.12 EUR, of at most six decimal places')
  .transform((text) => {
    const [amount = '', currency = ''] = text.split(' ');
    const [whole = '', fraction = ''] = amount.split('.');
    return { millionths: Number(whole + fraction.padEnd(6, '0')), currency };
  })
  .refine(
    ({ currency }) => Intl.supportedValuesOf('currency').includes(currency),
    'names no currency of ISO 4217',
  )
  .optional();
const samplers = ['always_on', 'always_off', 'traceidratio'] as const;
const SAMPLERS = [...samplers, ...samplers.map((name) => `parentbased_${name}` as const)] as const;

/** All variables that the service reads, with their defaults (contract, Operation 1). */
const environment = z.object({
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: whole(3000, 0, 65_535),
  OPS_HOST: z.string().min(1).default('127.0.0.1'),
  OPS_PORT: whole(3001, 0, 65_535),
  PUBLIC_URL: publicUrl.optional(),
  PUBLIC_HOSTS: list('').refine((names) => names.every(isHost), 'is not a comma list of host names'),
  DATA_DIR: z.string().min(1).default('.doorplate'),
  DATABASE_URL: z
    .string()
    .refine((text) => readDatabaseUrl(text) !== null, `is not a postgres:// URL; ${ESCAPES}`)
    .optional(),
  EVENTSTORE_URL: z
    .string()
    .regex(
      /^(esdb|kurrentdb|eventstore)(\+discover)?:\/\/(?:[^\s/?#@]*@)?[^\s/?#@]+([/?#][^\s@]*)?$/,
      `is not an esdb:// URL; ${ESCAPES}`,
    )
    // The client knows the first scheme alone; the others are later names of the same protocol.
    .transform((url) => url.replace(/^(kurrentdb|eventstore)(?=[:+])/, 'esdb'))
    .optional(),
  MASTER_KEY: masterKey,
  MASTER_KEY_PREVIOUS: masterKey,
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  TRUSTED_PROXIES: cidrs('127.0.0.0/8,::1/128'),
  MAX_CONNECTIONS: whole(10_000),
  OPS_HOSTS: list('').refine(
    (names) => names.every((name) => /^[a-z0-9.-]+$/i.test(name)),
    'is not a comma list of host names',
  ),

  /** Each name has settings of its own: `provider-settings.ts`. */
  ENRICHMENT_PROVIDERS: list('directory')
    .refine((names) => names.length > 0, 'names no provider')
    .refine((names) => names.every(isProviderName), 'is not a comma list of names of a-z, 0-9 and -'),
  ENRICHMENT_DIRECTORY: readableFile.optional(),
  COUNTRY_MMDB: readableFile.optional(),

  /** Shown in the dashboard alone. */
  UNIT_PRICE: price,

  API_REQUESTS_PER_SECOND: whole(10_000),
  LOOKUP_CAPACITY: whole(256),
  ENRICHMENT_INTAKE_PER_MINUTE: whole(900),
  ENRICHMENT_OUTSTANDING: whole(100_000),
  REVEALS_PER_SECOND: whole(100),
  TRACKERS_PER_PARTNER: whole(1_000),
  CAPTURES_PER_SECOND: whole(200),
  CAPTURES_PER_SECOND_PER_TRACKER: whole(100),
  CAPTURES_PER_SECOND_PER_VISITOR: whole(10),
  WEBHOOKS_PER_PARTNER: whole(5),
  WEBHOOK_MANAGEMENT_PER_MINUTE: whole(120),
  WEBHOOK_QUEUE_PER_PARTNER: whole(2_500_000),
  /** 10 GiB. */
  WEBHOOK_PAYLOAD_BYTES_PER_PARTNER: whole(10_737_418_240, 1, 999_999_999_999_999),
  WEBHOOK_CONCURRENCY: whole(32),
  WEBHOOK_STARTS_PER_SECOND: whole(200),

  /** Told what an operator should know (docs/runbook.md, Operator's webhook). */
  OPERATOR_WEBHOOK_URL: httpUrl.optional(),
  OPERATOR_WEBHOOK_SECRET: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/, 'is not whsec_ and 24 bytes or more in base64')
    .optional(),
  /** Private networks, HTTP and other ports are allowed for the operator's URL alone. */
  OPERATOR_WEBHOOK_ALLOW_PRIVATE: z
    .literal('1', 'is neither 1 nor unset')
    .optional()
    .transform((text) => text === '1'),

  /** DNS servers for domain checks, instead of the system's. */
  DNS_SERVERS: list('').refine(
    (servers) => servers.every(isDnsServer),
    'is not a comma list of addresses of DNS servers, each with its port if that is not 53',
  ),
  RETRY_BASE_SECONDS: z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is not a number of seconds')
    .transform(Number)
    .refine((seconds) => seconds > 0, 'is not above 0')
    .default(15),
  /** CIDR blocks that webhooks may be sent to, besides public addresses. */
  WEBHOOK_ALLOW_NETWORKS: cidrs(''),
  WEBHOOK_ALLOW_HTTP: z
    .literal('1', 'is neither 1 nor unset')
    .optional()
    .transform((text) => text === '1'),
  WEBHOOK_ALLOW_PORTS: list('')
    .refine((ports) => ports.every(isPort), 'is not a comma list of ports')
    .transform((ports) => ports.map(Number)),
  /** Tracing is off, and its SDK is not loaded, unless one of the next two is set. */
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl.optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number('is not a number').min(0).max(1).default(1),
  OTEL_SDK_DISABLED: z
    .string()
    .optional()
    .transform((text) => text?.toLowerCase() === 'true'),

  /** PEM of certificate authorities for receivers, besides the default ones. */
  WEBHOOK_EXTRA_CA_FILE: readableFile.optional(),
});

export type Config = z.output<typeof environment> & {
  /** Names of PostgreSQL's own variables that complete `DATABASE_URL`. */
  readonly databaseVariables: readonly string[];
  /** The providers of `ENRICHMENT_PROVIDERS`, in its order. */
  readonly providers: readonly ProviderSettings[];
  /** Names of the set variables that are only for development and tests. */
  readonly unsafe: readonly string[];
  /** Names of the set variables that an earlier version read and this one does not. */
  readonly gone: readonly string[];
  /** Whether `DATA_DIR` is the folder of a demo. */
  readonly isDemo: boolean;
};

const FOR_TESTS = [
  'DNS_SERVERS',
  'RETRY_BASE_SECONDS',
  'WEBHOOK_ALLOW_NETWORKS',
  'WEBHOOK_ALLOW_HTTP',
  'WEBHOOK_ALLOW_PORTS',
  'WEBHOOK_EXTRA_CA_FILE',
] as const;
const GONE = ['MAX_CONNECTIONS_PER_ADDRESS'] as const;

/** An invalid configuration; each of `lines` names a variable. */
export class ConfigError extends Error {
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** Reads and validates the whole configuration. An empty variable counts as unset. @throws ConfigError */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(given);
  const names = environment.shape.ENRICHMENT_PROVIDERS.safeParse(given.ENRICHMENT_PROVIDERS);
  const { settings: providers, problems } = readProviderSettings(names.data ?? [], given, VARIABLES);
  const lines = parsed.success
    ? problemsAcross(parsed.data)
    : parsed.error.issues.map((issue) => `${issue.path[0]?.toString() ?? ''} ${issue.message}`);
  if (!parsed.success || lines.length + problems.length > 0)
    throw new ConfigError(inOrder([...lines, ...problems]));
  const isGiven = (name: string): boolean => given[name] !== undefined;
  const database = readDatabaseUrl(parsed.data.DATABASE_URL ?? '', given);
  return {
    ...parsed.data,
    DATABASE_URL: database?.url,
    databaseVariables: database?.variables ?? [],
    providers,
    unsafe: FOR_TESTS.filter(isGiven),
    gone: GONE.filter(isGiven),
    isDemo: isDemoFolder(parsed.data.DATA_DIR),
  };
}

const VARIABLES = Object.keys(environment.shape);
/** Settings of providers, of tracing, and PostgreSQL's own. */
const PREFIXES = /^(ENRICHMENT|OTEL|PG)_?/;

/** Returns the names of the set variables that the service, or a library that it uses, would read. */
export const settingsIn = (env: NodeJS.ProcessEnv): string[] =>
  Object.keys(env).filter((name) => env[name] !== '' && (VARIABLES.includes(name) || PREFIXES.test(name)));

/** Sorts lines by the variables that they begin with; a provider's own come after the list of providers. */
function inOrder(lines: readonly string[]): string[] {
  const position = (line: string): number => {
    const index = VARIABLES.indexOf(line.split(' ', 1)[0] ?? '');
    return index === -1 ? VARIABLES.indexOf('ENRICHMENT_DIRECTORY') : index;
  };
  return [...lines].sort((a, b) => position(a) - position(b));
}

function problemsAcross(config: z.output<typeof environment>): string[] {
  const {
    MASTER_KEY,
    MASTER_KEY_PREVIOUS,
    OPERATOR_WEBHOOK_URL: url,
    OPERATOR_WEBHOOK_SECRET: secret,
  } = config;
  return [
    ...(MASTER_KEY_PREVIOUS && !MASTER_KEY ? ['MASTER_KEY_PREVIOUS is set, but MASTER_KEY is not'] : []),
    ...(url && !secret ? ['OPERATOR_WEBHOOK_URL is set, but OPERATOR_WEBHOOK_SECRET is not'] : []),
    ...(secret && !url ? ['OPERATOR_WEBHOOK_SECRET is set, but OPERATOR_WEBHOOK_URL is not'] : []),
    ...(url?.startsWith('http:') && !config.OPERATOR_WEBHOOK_ALLOW_PRIVATE
      ? ['OPERATOR_WEBHOOK_URL is http, which OPERATOR_WEBHOOK_ALLOW_PRIVATE=1 allows']
      : []),
  ];
}
