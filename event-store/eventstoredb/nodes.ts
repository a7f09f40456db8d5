/**
 * The node that leads, and the two connections to it: one for appends and one for reads and subscriptions, so that a backlog never
 * delays an append.
 *
 * A connection is doubted when a frame arrives after a second of silence: in that time the node may have been frozen and another
 * one elected, and a deposed leader believes that it leads for about a second after it wakes. `confirm` asks a majority of the
 * nodes who leads. A single node is never doubted.
 */
import { lookup } from 'node:dns/promises';
import { pause } from '../../platform/clock/waiting.ts';
import type { ConnectionSettings, Endpoint } from './connection-string.ts';
import { CallFailed, type Connection, openConnection, UNAVAILABLE } from './grpc.ts';
import { decodeGossip, type Member } from './messages.ts';

export type Purpose = 'appends' | 'reads';

export interface Nodes {
  /** Returns the connection to the leader. @throws CallFailed when there is no leader in time */
  connection(purpose: Purpose): Promise<Connection>;
  /** Takes note of a failed call: it follows the leader that an answer names, and leaves a node that does not answer. */
  failed(connection: Connection, failure: CallFailed): void;
  /** Returns whether what the connection has just answered can be believed; if not, it is to be read again. */
  confirm(connection: Connection): Promise<boolean>;
  close(): void;
}

const GOSSIP = '/event_store.client.gossip.Gossip/Read';
const GOSSIP_MS = 1_000;
/** Elections take a second or two. */
const FIND_MS = 4_000;
const RETRY_MS = 100;

const nameOf = ({ host, port }: Endpoint): string => `${host}:${port}`;

export function createNodes(settings: ConnectionSettings): Nodes {
  const isCluster = settings.discover || settings.endpoints.length > 1;
  let known: readonly Endpoint[] = settings.endpoints;
  let leader: Endpoint | null = isCluster ? null : (settings.endpoints[0] ?? null);
  let finding: Promise<Endpoint> | null = null;
  let closed = false;
  const connections = new Map<string, Connection>();

  const connectTo = (endpoint: Endpoint, purpose: Purpose | 'gossip'): Connection => {
    const name = `${purpose} ${nameOf(endpoint)}`;
    const open = connections.get(name);
    if (open && !open.isClosed()) return open;
    const made = openConnection(endpoint, settings, () => {
      if (connections.get(name) === made) connections.delete(name);
    });
    connections.set(name, made);
    return made;
  };

  const gossipOf = async (endpoint: Endpoint): Promise<Member[]> => {
    const [answer] = await connectTo(endpoint, 'gossip').unary(GOSSIP, new Uint8Array(), GOSSIP_MS);
    if (answer === undefined) throw new CallFailed(UNAVAILABLE, 'a node answered without its members');
    return decodeGossip(answer);
  };

  /** Returns the node that a majority of the members names as leader, as soon as it is known; null if there is none. */
  const ask = (endpoints: readonly Endpoint[]): Promise<Endpoint | null> =>
    new Promise((resolve) => {
      const votes = new Map<string, { readonly endpoint: Endpoint; count: number }>();
      let members = endpoints.length;
      let unanswered = endpoints.length;
      const vote = (said: readonly Member[]): void => {
        members = Math.max(members, said.length);
        known = said.map(({ host, port }) => ({ host, port }));
        const [first, ...others] = said.filter(({ isLeader, isAlive }) => isLeader && isAlive);
        // A node that sees two leaders does not know which.
        if (first === undefined || others.length > 0) return;
        const one = votes.get(nameOf(first)) ?? { endpoint: first, count: 0 };
        one.count += 1;
        votes.set(nameOf(first), one);
        if (one.count * 2 > members) resolve({ host: first.host, port: first.port });
      };
      const done = (): void => {
        unanswered -= 1;
        if (unanswered === 0) resolve(null);
      };
      for (const endpoint of endpoints) gossipOf(endpoint).then(vote).then(done, done);
    });

  const addresses = async (): Promise<readonly Endpoint[]> => {
    if (!settings.discover) return settings.endpoints;
    const found = await Promise.all(
      settings.endpoints.map(async ({ host, port }) =>
        (await lookup(host, { all: true }).catch(() => [])).map(({ address }) => ({ host: address, port })),
      ),
    );
    return found.flat();
  };

  const find = async (): Promise<Endpoint> => {
    const until = performance.now() + FIND_MS;
    for (let round = 0; !closed; round += 1) {
      // Names of the gossip first, then those of the configuration, where all known nodes may have moved.
      const candidates = round % 2 === 0 && known !== settings.endpoints ? known : await addresses();
      const found = candidates.length === 0 ? null : await ask(candidates);
      if (found !== null) return found;
      if (performance.now() > until) break;
      await pause(RETRY_MS);
    }
    throw new CallFailed(UNAVAILABLE, closed ? 'the event store is closed' : 'no node leads', {}, true);
  };

  const follow = (found: Endpoint | null): void => {
    if (leader !== null && (found === null || nameOf(found) !== nameOf(leader)))
      for (const purpose of ['appends', 'reads']) connections.get(`${purpose} ${nameOf(leader)}`)?.close();
    leader = found;
  };

  const findOnce = async (): Promise<Endpoint> => {
    finding ??= find().finally(() => {
      finding = null;
    });
    const found = await finding;
    follow(found);
    return found;
  };

  return {
    connection: async (purpose) => {
      if (closed) throw new CallFailed(UNAVAILABLE, 'the event store is closed', {}, true);
      return connectTo(leader ?? (await findOnce()), purpose);
    },
    failed: (connection, { code, trailers }) => {
      const named = trailers['leader-endpoint-host'];
      if (trailers.exception === 'not-leader' && named !== undefined)
        return follow({ host: named, port: Number(trailers['leader-endpoint-port']) });
      if (code === 1 || code === UNAVAILABLE || trailers.exception === 'not-leader') {
        connection.close();
        if (isCluster && leader !== null && nameOf(leader) === nameOf(connection)) follow(null);
      }
    },
    confirm: async (connection) => {
      if (!isCluster || !connection.isDoubted()) return true;
      const asked = performance.now();
      const found = await ask(known);
      if (found !== null && nameOf(found) === nameOf(connection)) {
        connection.trust(asked);
        return false;
      }
      follow(found);
      return false;
    },
    close: () => {
      closed = true;
      for (const connection of connections.values()) connection.close();
    },
  };
}
