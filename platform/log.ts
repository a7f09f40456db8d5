import ipaddr from 'ipaddr.js';
import pino, { type Logger } from 'pino';

export type { Logger };

/** Names under which something secret or personal has been seen to stand, at the top or one or two levels down. */
const SECRET_KEYS = [
  'authorization',
  'Authorization',
  'api_key',
  'apiKey',
  'key',
  'secret',
  'password',
  'token',
  'cookie',
  'email',
  'e_mail',
  'master_key',
  'masterKey',
  'database_url',
  'databaseUrl',
];

const REDACTED_PATHS = SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]);

/** What gives a secret away inside a text: bearer tokens, webhook secrets, URL passwords, e-mail addresses. */
const SECRET_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer\s+)[^\s"',;]+/gi, '$1[redacted]'],
  [/\bdp_[A-Za-z0-9_-]{20,}/g, 'dp_[redacted]'],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, 'whsec_[redacted]'],
  [/(:\/\/[^\s:/@]*:)[^\s/@]+@/g, '$1[redacted]@'],
  [/(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/g, '[e-mail]'],
];

export interface LoggerOptions {
  readonly level: string;
  /** Where the JSON lines go. Default: stdout. */
  readonly destination?: 'stdout' | 'stderr' | pino.DestinationStream;
}

/**
 * The process's logger: one JSON object a line, times in ISO 8601. Authorization headers, API keys, secrets,
 * passwords in URLs and e-mail addresses are replaced, by the names they stand under and by how they look.
 */
export function createLogger({ level, destination = 'stdout' }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
      hooks: { streamWrite: redactText },
    },
    stream(destination),
  );
}

/** Replaces what looks like a secret or an e-mail address in a text. */
function redactText(text: string): string {
  return SECRET_TEXTS.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text);
}

/**
 * An address as it may stand in a log: the /16 of an IPv4 address (`8.8.x.x`), the /32 of an IPv6 address
 * (`2001:4860::/32`); `invalid` for anything else, so that no caller's text is logged by mistake.
 */
export function maskAddress(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'invalid';
  const address = ipaddr.process(ip);
  if (address.kind() === 'ipv4') {
    const [first, second] = address.toByteArray();
    return `${first}.${second}.x.x`;
  }
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/32`).toString()}/32`;
}

function stream(destination: NonNullable<LoggerOptions['destination']>): pino.DestinationStream {
  if (typeof destination !== 'string') return destination;
  return pino.destination({ fd: destination === 'stdout' ? 1 : 2, sync: true });
}
