/**
 * The node that leads, and the two connections to it: one for appends and one for reads and subscriptions, so that a backlog never
 * delays an append.
 *
 * A leader that was frozen and deposed believes for about a second after it wakes that it leads, and its reads are old. So what a node
 * of a cluster answers is believed while it answers without a second of silence, which is less than an election takes. After such
 * a silence, and on a new connection, a majority of the nodes has to name it the leader, and the read is repeated.
 */
import type { LookupAddress } from 'node:dns';
import dns from 'node:dns/promises';
import { pause, within } from '../../platform/clock/waiting.ts';
import type { ConnectionSettings, Endpoint } from './connection-string.ts';
import { CallFailed, type Connection, openConnection, UNAVAILABLE } from './grpc.ts';
import { decodeGossip, type Member } from './messages.ts';

export interface Nodes {
  /** Returns the connection to the leader, in at most `ms` milliseconds. @throws CallFailed when no leader is found */
  connection(purpose: 'appends' | 'reads', ms: number): Promise<Connection>;
  /** Takes note of a failed call: it follows the leader that an answer names, and leaves a node that does not answer. */
  failed(connection: Connection, failure: CallFailed): void;
  /** Returns whether the answer to a read that was sent at `askedAt` can be believed; if not, it is to be read again. */
  confirm(connection: Connection, askedAt: number): Promise<boolean>;
  close(): void;
}

const GOSSIP = '/event_store.client.gossip.Gossip/Read';
const GOSSIP_MS = 1_000;
const RETRY_MS = 100;
/**
 * After this time, in the nodes' units of 100 ns, a dead node counts no more: nodes that moved are told of under their old addresses for
 * half an hour, and with those half of the nodes would be no majority.
 */
const DEAD_TICKS = 60 * 10_000_000;

const nameOf = ({ host, port }: Endpoint): string => `${host}:${port}`;
const failure = (why: string): CallFailed => new CallFailed(UNAVAILABLE, why, {}, true);

export function createNodes(settings: ConnectionSettings): Nodes {
  const isCluster = settings.discover || settings.endpoints.length > 1;
  const first = isCluster ? null : (settings.endpoints[0] ?? null);
  let leader = first;
  let known = settings.endpoints;
  let finding: { readonly since: number; readonly found: Promise<Endpoint | null> } | null = null;
  let lastError = 'no node leads';
  let closed = false;
  const connections = new Map<string, Connection>();
  const lookups = new Map<string, Promise<LookupAddress[]>>();

  const connectTo = (endpoint: Endpoint, purpose: 'appends' | 'reads' | 'gossip'): Connection => {
    if (closed) throw failure('the event store is closed');
    const name = `${purpose} ${nameOf(endpoint)}`;
    const open = connections.get(name);
    if (open && !open.isClosed()) return open;
    const made = openConnection(endpoint, settings, () => {
      if (connections.get(name) === made) connections.delete(name);
    });
    connections.set(name, made);
    return made;
  };

  const noteError = (error: Error): void => {
    lastError = error.message;
  };

  const membersBy = async (endpoint: Endpoint): Promise<Member[]> => {
    let members: Member[] = [];
    await connectTo(endpoint, 'gossip').request(GOSSIP, new Uint8Array(), GOSSIP_MS, (bytes) => {
      members = decodeGossip(bytes);
    });
    const newest = Math.max(...members.map(({ seenAt }) => seenAt));
    return members.filter(({ isAlive, seenAt }) => isAlive || newest - seenAt < DEAD_TICKS);
  };

  /** Returns the leader by a majority of the members, as soon as there is one; null if there is none. */
  const ask = (endpoints: readonly Endpoint[]): Promise<Endpoint | null> =>
    new Promise((resolve) => {
      const votes: string[] = [];
      let size = endpoints.length;
      const vote = (members: readonly Member[]): void => {
        size = Math.max(size, members.length);
        if (members.length > 0) known = members;
        const [named, ...others] = members.filter(({ isLeader, isAlive }) => isLeader && isAlive);
        if (named === undefined || others.length > 0) return;
        votes.push(nameOf(named));
        if (2 * votes.filter((name) => name === nameOf(named)).length > size) resolve(named);
      };
      const asked = endpoints.map((endpoint) => membersBy(endpoint).then(vote).catch(noteError));
      void Promise.all(asked).then(() => resolve(null));
    });

  /** Without an answer in time, none. A lookup that hangs holds one of Node's few threads, so there is never a second one of a name. */
  const addressesOf = async ({ host, port }: Endpoint): Promise<Endpoint[]> => {
    const asked = lookups.get(host) ?? dns.lookup(host, { all: true }).finally(() => lookups.delete(host));
    lookups.set(host, asked);
    const late = (): Error => new Error(`DNS does not answer for ${host}`);
    const found = await within(asked, GOSSIP_MS, late).catch(noteError);
    return (found ?? []).map(({ address }) => ({ host: address, port, servername: host }));
  };

  /** The names of the gossip, and in turns those of the configuration, as all known nodes may have moved. */
  const candidates = async (round: number): Promise<readonly Endpoint[]> => {
    if (round % 2 === 0 && known !== settings.endpoints) return known;
    if (!settings.discover) return settings.endpoints;
    return (await Promise.all(settings.endpoints.map(addressesOf))).flat();
  };

  const follow = (found: Endpoint | null): void => {
    const former = leader;
    leader = found;
    if (former === null || (found !== null && nameOf(found) === nameOf(former))) return;
    for (const purpose of ['appends', 'reads']) connections.get(`${purpose} ${nameOf(former)}`)?.close();
  };

  /** Asks the nodes once for all callers. `since`: when it began, monotonic. */
  const findOnce = (round: number): NonNullable<typeof finding> => {
    const find = async (): Promise<Endpoint | null> => {
      const found = await ask(await candidates(round));
      finding = null;
      return found;
    };
    finding ??= { since: performance.now(), found: find() };
    return finding;
  };

  const find = async (until: number): Promise<Endpoint> => {
    for (let round = 0; ; round += 1) {
      const found = leader ?? (await findOnce(round).found);
      if (closed) throw failure('the event store is closed');
      if (found !== null) {
        leader ??= found;
        return leader;
      }
      if (performance.now() + RETRY_MS > until) throw failure(lastError);
      await pause(RETRY_MS);
    }
  };

  return {
    connection: async (purpose, ms) => {
      const found = within(find(performance.now() + ms), ms, () => failure(lastError));
      return connectTo(await found, purpose);
    },
    failed: (connection, { code, trailers }) => {
      const { exception, 'leader-endpoint-host': host, 'leader-endpoint-port': port } = trailers;
      const isDeposed = exception === 'not-leader';
      if (!isDeposed && code !== UNAVAILABLE) return;
      connection.close();
      if (leader === null || nameOf(leader) !== nameOf(connection)) return;
      follow(isDeposed && host !== undefined ? { host, port: Number(port) } : first);
    },
    confirm: async (connection, askedAt) => {
      if (!isCluster || connection.isTrustedSince(askedAt)) return true;
      const { since, found } = findOnce(0);
      const named = await found;
      if (named !== null && nameOf(named) === nameOf(connection)) connection.trust(since);
      else if (leader !== null && nameOf(leader) === nameOf(connection)) follow(named);
      return false;
    },
    close: () => {
      closed = true;
      for (const connection of connections.values()) connection.close();
    },
  };
}
