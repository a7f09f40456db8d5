import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import pino, { type Logger } from 'pino';

export type { Logger };

/** Field names that hold secrets or personal data, at the top level or one or two levels down. */
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

/** Patterns of secrets inside text: bearer tokens, webhook secrets, URL passwords, e-mail addresses. */
const SECRET_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer\s+)[^\s"',;]+/gi, '$1[redacted]'],
  [/dp_[A-Za-z0-9_-]{20,}/g, 'dp_[redacted]'],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, 'whsec_[redacted]'],
  [/(:\/\/[^\s:/@]*:)[^\s/@]+@/g, '$1[redacted]@'],
  [/(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/g, '[e-mail]'],
];

/** Characters of lines that could not be written; further lines are lost. */
const MAX_UNWRITTEN = 100_000;

export interface LoggerOptions {
  readonly level: string;
  /** Destination of the JSON lines. Default: stdout. */
  readonly destination?: 'stdout' | 'stderr' | pino.DestinationStream;
}

/**
 * Creates the process's logger: one JSON object per line, times in ISO 8601; on a terminal, lines for people. Authorization headers, API keys, secrets,
 * passwords in URLs and e-mail addresses are redacted by field name and by pattern.
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

function redactText(text: string): string {
  return SECRET_TEXTS.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text);
}

function stream(destination: NonNullable<LoggerOptions['destination']>): pino.DestinationStream {
  if (typeof destination !== 'string') return destination;
  const fd = destination === 'stdout' ? 1 : 2;
  const file = pino.destination({ fd, sync: true, maxLength: MAX_UNWRITTEN });
  // Without a listener, a line for which a full disk has no room would end the process.
  file.on('error', () => undefined);
  return isatty(fd) ? { write: (line) => file.write(forPeople(line)) } : file;
}

const STYLES: Readonly<Record<string, Parameters<typeof styleText>[0]>> = {
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};

/** Formats a line of the log: `10:05:12 warn   message  field=value`. A stack follows on lines of its own. */
export function forPeople(line: string): string {
  const { level, time, msg = '', stack, err, ...fields } = JSON.parse(line);
  const label: string = pino.levels.labels[level] ?? String(level);
  const more = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const head = `${String(time).slice(11, 19)} ${styleText(STYLES[label] ?? 'dim', label.padEnd(5))} ${msg}`;
  const trace = stack ?? err?.stack;
  return `${[head, ...more].join('  ')}\n${trace === undefined ? '' : `${trace}\n`}`;
}
