import type { Config } from './config.ts';

/** A configured store cannot be used. The message is one line with the variable, the address and the cause. */
export class Unreachable extends Error {
  constructor(variable: string, url: string, cause: unknown) {
    super(`${variable}: ${addressOf(url)} cannot be used: ${causeOf(cause)}`, { cause });
  }
}

/** Queries the event store if one is configured. @returns the problem; null if it answers */
export const eventStoreProblem = async (
  { EVENTSTORE_URL: url }: Pick<Config, 'EVENTSTORE_URL'>,
  store: { head(): Promise<unknown> },
): Promise<Unreachable | null> => {
  if (url === undefined) return null;
  return store.head().then(
    () => null,
    (error: unknown) => new Unreachable('EVENTSTORE_URL', url, error),
  );
};

/** Returns a URL without credentials, and without parameters except the host of a PostgreSQL socket. */
export const addressOf = (url: string): string => {
  const [, scheme = '', rest = ''] = /^([a-z+]+:\/\/)(.*)$/i.exec(url) ?? [];
  const [authority = '', query = ''] = rest.split('?', 2);
  const socket = new URLSearchParams(query).get('host');
  return `${scheme}${authority.slice(authority.lastIndexOf('@') + 1)}${socket === null ? '' : `?host=${socket}`}`;
};

const HINTS: readonly [RegExp, string][] = [
  [
    /self.signed|unable to (get|verify)|unknown (ca|authority)|certificate/i,
    "name the authority's certificate with tlsCAFile=FILE in EVENTSTORE_URL",
  ],
  [
    /wrong version number|EPROTO|packet length too long/i,
    'tls=false in EVENTSTORE_URL is for a server without TLS',
  ],
];

/** Returns the innermost cause in one line, because wrappers say less. */
const causeOf = (error: unknown): string => {
  let inner = error;
  while (inner instanceof Error && (inner.cause ?? firstOf(inner))) inner = inner.cause ?? firstOf(inner);
  const text = (inner instanceof Error && inner.message ? inner.message : String(inner)).replaceAll(
    /\s+/g,
    ' ',
  );
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint === undefined ? text : `${text} (${hint})`;
};

/** A name with several addresses fails with one error for each. */
const firstOf = (error: Error): unknown => (error instanceof AggregateError ? error.errors[0] : undefined);
