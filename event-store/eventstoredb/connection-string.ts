/** Connection strings of EventStoreDB: `esdb://user:password@a:2113,b:2113?tls=false`, `esdb+discover://name:2113`. */
import { readFileSync } from 'node:fs';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** The name in the node's certificate, where `host` is an address that DNS gave for it. */
  readonly servername?: string;
}

export interface ConnectionSettings {
  readonly endpoints: readonly Endpoint[];
  /** Whether the endpoints are names whose addresses are the nodes. */
  readonly discover: boolean;
  readonly tls: boolean;
  /** As `tls.connect` takes them. */
  readonly tlsOptions: {
    readonly rejectUnauthorized?: boolean;
    readonly ca?: Buffer | undefined;
    readonly cert?: Buffer | undefined;
    readonly key?: Buffer | undefined;
  };
  /** null: none. */
  readonly credentials: { readonly username: string; readonly password: string } | null;
  /** The header of the credentials; null: none. */
  readonly authorization: string | null;
  /** null: no pings. */
  readonly keepAliveIntervalMs: number | null;
  readonly keepAliveTimeoutMs: number;
}

const SHAPE =
  /^(?:esdb|eventstore|kurrent|kurrentdb|kdb)(\+discover)?:\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/i;
const HOST = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i;
const PORT = 2113;
/** A node that hangs is noticed within 5 seconds. */
const KEEP_ALIVE = { interval: 2_000, timeout: 2_500 } as const;

/** @throws Error, which holds no part of the string, since it may hold a password */
export function parseConnectionString(text: string): ConnectionSettings {
  const [, discover, user = '', hosts = '', query = ''] = SHAPE.exec(text.trim()) ?? [];
  const endpoints = hosts.split(',').map((host): Endpoint => {
    const [, bracketed, plain = '', port = PORT] = HOST.exec(host.trim()) ?? [];
    return { host: bracketed ?? plain, port: Number(port) };
  });
  if (endpoints.some(({ host, port }) => host === '' || port < 1 || port > 65_535))
    throw new Error('it is not of the form esdb://host:port?option=value');
  const options = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) options.set(name.toLowerCase(), value);
  const isOff = (name: string): boolean => options.get(name.toLowerCase())?.toLowerCase() === 'false';
  const milliseconds = (name: string, usual: number): number => {
    const given = Number(options.get(name.toLowerCase()));
    return Number.isInteger(given) && given !== 0 ? given : usual;
  };
  const interval = milliseconds('keepAliveInterval', KEEP_ALIVE.interval);
  const timeout = milliseconds('keepAliveTimeout', KEEP_ALIVE.timeout);
  const tls = !isOff('tls');
  const credentials = user === '' ? null : credentialsOf(user);
  return {
    endpoints,
    discover: discover !== undefined,
    tls,
    tlsOptions: tls
      ? {
          rejectUnauthorized: !isOff('tlsVerifyCert'),
          ca: fileOf(options, 'tlsCAFile'),
          cert: fileOf(options, 'userCertFile'),
          key: fileOf(options, 'userKeyFile'),
        }
      : {},
    credentials,
    authorization: credentials && basic(credentials),
    // The official clients turn it off by -1.
    keepAliveIntervalMs: interval < 0 || timeout < 0 ? null : interval,
    keepAliveTimeoutMs: timeout,
  };
}

function fileOf(options: ReadonlyMap<string, string>, name: string): Buffer | undefined {
  const path = options.get(name.toLowerCase());
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function credentialsOf(user: string): NonNullable<ConnectionSettings['credentials']> {
  try {
    const [username = '', password = ''] = user.split(':', 2).map(decodeURIComponent);
    return { username, password };
  } catch {
    throw new Error('its user and password are not percent-encoded');
  }
}

const basic = ({ username, password }: NonNullable<ConnectionSettings['credentials']>): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
