/** Connection strings of EventStoreDB: `esdb://user:password@a:2113,b:2113?tls=false`, `esdb+discover://name:2113`. */
import { readFileSync } from 'node:fs';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionSettings {
  readonly endpoints: readonly Endpoint[];
  /** Whether the one endpoint is a name whose addresses are the nodes. */
  readonly discover: boolean;
  readonly tls: boolean;
  /** As `tls.connect` takes them. */
  readonly tlsOptions: Readonly<Record<string, unknown>>;
  /** The header of the user and password; null: none. */
  readonly authorization: string | null;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

const SHAPE =
  /^(?:esdb|eventstore|kurrent|kurrentdb|kdb)(\+discover)?:\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/i;
const PORT = 2113;

/** @throws Error, which holds no part of the string, since it may hold a password */
export function parseConnectionString(text: string): ConnectionSettings {
  const [, discover, user, hosts = '', query = ''] = SHAPE.exec(text.trim()) ?? [];
  const options = new Map(
    [...new URLSearchParams(query)].map(([name, value]) => [name.toLowerCase(), value] as const),
  );
  const endpoints = hosts.split(',').map((host) => {
    const [, bracketed, plain, port] =
      /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(host.trim()) ?? [];
    return { host: bracketed ?? plain ?? '', port: Number(port ?? PORT) };
  });
  if (endpoints.some(({ host, port }) => host === '' || port < 1 || port > 65_535))
    throw new Error(
      'the connection string of the event store is not of the form esdb://host:port?option=value',
    );
  const tls = options.get('tls')?.toLowerCase() !== 'false';
  const file = (name: string): Buffer | undefined => {
    const path = options.get(name.toLowerCase());
    return path === undefined ? undefined : readFileSync(path);
  };
  const number = (name: string, usual: number): number => {
    const value = Number(options.get(name.toLowerCase()) ?? usual);
    return Number.isInteger(value) && value > 0 ? value : usual;
  };
  return {
    endpoints,
    discover: discover !== undefined,
    tls,
    tlsOptions: tls
      ? {
          rejectUnauthorized: options.get('tlsverifycert')?.toLowerCase() !== 'false',
          ca: file('tlsCAFile'),
          cert: file('userCertFile'),
          key: file('userKeyFile'),
        }
      : {},
    authorization:
      user === undefined || user === ''
        ? null
        : `Basic ${Buffer.from(user.split(':', 2).map(decodeURIComponent).join(':')).toString('base64')}`,
    keepAliveIntervalMs: number('keepAliveInterval', 10_000),
    keepAliveTimeoutMs: number('keepAliveTimeout', 5_000),
  };
}
