/** The service of a storm: two api and two workers processes, their stores, and the outside world. */
import type { ServerResponse } from 'node:http';
import { freePort } from '../../cli/installation/free-port.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { type Environment, MASTER_KEY } from '../support/doorplate.ts';
import { COMPANY, respond, startProvider } from '../support/http-provider.ts';
import { type Received, startReceiver } from '../support/receiver.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { allowReceivers } from '../support/webhook-sink.ts';
import { type StormPostgres, startStormPostgres } from './postgres.ts';
import { createProcess, type Role, type StormProcess } from './processes.ts';
import type { Violations } from './violations.ts';

export interface Stack {
  readonly postgres: StormPostgres;
  /** The proxy of the EventStoreDB; null: PostgreSQL is the event store, or a cluster that clients reach directly. */
  readonly storeProxy: TcpProxy | null;
  readonly processes: readonly StormProcess[];
  readonly api: readonly StormProcess[];
  readonly workers: readonly StormProcess[];
  /** The receiver of a partner's webhooks. */
  webhookUrl(partnerId: string): string;
  /** Makes host names of webhooks unknown, or known again. */
  breakDns(broken: boolean): void;
  close(): Promise<void>;
}

export interface StackOptions {
  /** An `esdb://` URL; undefined: events are in PostgreSQL. */
  readonly eventStoreUrl: string | undefined;
  readonly violations: Violations;
  readonly onDelivery: (request: Received, response: ServerResponse) => void;
  /** The number of processes. Default: two of each. */
  readonly roles?: readonly Role[] | undefined;
  /** The folder of the processes' program. Default: this one. */
  readonly root?: string | undefined;
  /** Moves the processes' dates. Default: none does. */
  readonly clockFile?: string | undefined;
}

const HOOK_HOST = 'hooks.example.com';
/** No ceiling limits the storm; retry delays are short, so that two minutes hold several. */
const SETTINGS: Environment = {
  MASTER_KEY,
  LOG_LEVEL: 'info',
  RETRY_BASE_SECONDS: '0.2',
  ENRICHMENT_HTTP_TIMEOUT_MS: '1000',
  ENRICHMENT_INTAKE_PER_MINUTE: '999999',
  LOOKUP_CAPACITY: '2000',
};
const ROLES: readonly Role[] = ['api', 'api', 'workers', 'workers'];

export const startStack = async ({
  eventStoreUrl,
  violations,
  onDelivery,
  roles = ROLES,
  root,
  clockFile,
}: StackOptions): Promise<Stack> => {
  const closing: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closing.toReversed()) await one();
  };
  try {
    const receiverPort = await freePort();
    const allowed = await allowReceivers([receiverPort], [HOOK_HOST]);
    closing.push(() => allowed.remove());
    const receiver = await startReceiver({ tls: allowed.tls, port: receiverPort, answer: onDelivery });
    closing.push(() => receiver.close());
    const provider = await startVendor();
    closing.push(() => provider.close());
    let dnsBroken = false;
    const dns = await startDnsServer((type, name) => {
      if (dnsBroken) return 'SERVFAIL';
      if (name !== HOOK_HOST) return 'NXDOMAIN';
      return type === 'A' ? ['127.0.0.1'] : [];
    });
    closing.push(() => dns.close());
    const postgres = await startStormPostgres();
    closing.push(() => postgres.remove());
    const store = await reachEventStore(eventStoreUrl);
    closing.push(() => store.proxy?.close());
    const env: Environment = {
      ...SETTINGS,
      ...allowed.env,
      ...provider.env,
      ...store.env,
      DATABASE_URL: postgres.url,
      NODE_OPTIONS: ['resolve-with', ...(clockFile === undefined ? [] : ['move-clock'])]
        .map((name) => `--import=${import.meta.resolve(`../support/${name}.ts`)}`)
        .join(' '),
      TEST_DNS_SERVER: dns.resolver.getServers()[0] ?? '',
      ...(clockFile !== undefined && { TEST_CLOCK_FILE: clockFile }),
    };
    const processes = await prepareProcesses(roles, env, violations, closing);
    for (const one of processes) one.start(root);
    return {
      postgres,
      storeProxy: store.proxy,
      processes,
      api: processes.filter(({ role }) => role === 'api'),
      workers: processes.filter(({ role }) => role === 'workers'),
      webhookUrl: (partnerId) => `https://${HOOK_HOST}:${receiverPort}/${partnerId}`,
      breakDns: (broken) => {
        dnsBroken = broken;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};

/** A data vendor that fails at random and does not know a quarter of the addresses. */
const startVendor = () => {
  let asked = 0;
  return startProvider((ip, response) => {
    asked += 1;
    const unknown = Number(ip.split('.').at(-1)) % 4 === 0;
    respond(response, asked % 7 === 0 ? 500 : unknown ? 404 : 200, COMPANY);
  });
};

/** A single node is reached through a proxy; clients of a cluster learn the nodes' own addresses. */
const reachEventStore = async (
  url: string | undefined,
): Promise<{ readonly proxy: TcpProxy | null; readonly env: Environment }> => {
  if (url === undefined) return { proxy: null, env: {} };
  const hosts = hostsOf(url);
  const [only] = hosts;
  if (only === undefined || hosts.length > 1) return { proxy: null, env: { EVENTSTORE_URL: url } };
  const proxy = await startTcpProxy({ host: only.host, port: only.port });
  const proxied = url.replace(`${only.host}:${only.port}`, `127.0.0.1:${proxy.port}`);
  return { proxy, env: { EVENTSTORE_URL: proxied } };
};

/** The nodes that an `esdb://` URL names. */
export const hostsOf = (url: string): { readonly host: string; readonly port: number }[] => {
  const authority = /^[^:]+:\/\/(?:[^@/]*@)?([^/?]+)/.exec(url)?.[1] ?? '';
  return authority.split(',').map((node) => {
    const [host = '', port = '2113'] = node.split(':');
    return { host, port: Number(port) };
  });
};

const prepareProcesses = async (
  roles: readonly Role[],
  env: Environment,
  violations: Violations,
  closing: (() => unknown)[],
): Promise<StormProcess[]> => {
  const processes: StormProcess[] = [];
  for (const role of roles) {
    const name = `${role} ${processes.filter((one) => one.role === role).length + 1}`;
    const started = await createProcess({
      name,
      role,
      env,
      onUnexpectedEnd: (code) => {
        const log = started.lastLogLines();
        violations.add('no process ends by itself', `${name} ended with ${code}:\n${log}`);
        started.start();
      },
    });
    closing.push(() => started.remove());
    processes.push(started);
  }
  return processes;
};
