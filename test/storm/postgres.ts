/** The storm's own PostgreSQL, which it can stop, start, cut off and slow down. */

import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { identify, isAlive, until } from '../../platform/embedded/processes.ts';
import { startDatabaseProxy } from '../support/database-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

export interface StormPostgres {
  /** Through the proxy: the URL for the processes. */
  readonly url: string;
  /** Without the proxy: the storm's own connections. */
  readonly directUrl: string;
  readonly proxy: TcpProxy;
  /** SIGINT: PostgreSQL's fast shutdown. SIGQUIT: its immediate one, after which it recovers from its log. */
  stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

const STOP_LIMIT_MS = 30_000;
const QUIET = { info: () => {}, warn: () => {}, error: () => {} };

export const startStormPostgres = async (): Promise<StormPostgres> => {
  const dataDir = makeTestFolder();
  const handles: EmbeddedPostgres[] = [];
  // Like a short-lived command: nothing else restarts PostgreSQL.
  const start = async (): Promise<EmbeddedPostgres> => {
    const moreSettings = ['max_connections=200'];
    const started = await startEmbeddedPostgres({ dataDir, mode: 'join', log: QUIET, moreSettings });
    handles.push(started);
    return started;
  };
  const { url: directUrl } = await start();
  const { proxy, url } = await startDatabaseProxy(directUrl);
  return {
    url,
    directUrl,
    proxy,
    stop: async (signal) => {
      const server = identify(handles.at(-1)?.pid ?? 0);
      if (server === null) throw new Error('PostgreSQL does not run');
      process.kill(server.pid, signal);
      const gone = await until(() => !isAlive(server), STOP_LIMIT_MS);
      if (!gone) throw new Error(`PostgreSQL did not end within ${STOP_LIMIT_MS / 1_000} s of ${signal}`);
    },
    start: async () => void (await start()),
    remove: async () => {
      await proxy.close();
      for (const handle of handles) await handle.stop();
      await removeDataFolder(dataDir);
    },
  };
};
