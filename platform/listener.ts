import pg from 'pg';
import { endClient } from './end-postgres.ts';

export interface ListenerOptions {
  readonly url: string;
  /** The session's name in PostgreSQL. */
  readonly name: string;
  readonly channels: readonly string[];
  readonly onNotification: (channel: string, payload: string) => void;
  /** Called when the connection is lost; earlier notifications may be from a server that has crashed. */
  readonly lost?: () => void;
  /** Called when notifications arrive from now on. */
  readonly ready?: () => void;
}

export interface Listener {
  /** Connects unless connected. A lost connection is restored after a while, or by the next call. */
  ensure(): void;
  /** Returns whether notifications currently arrive. */
  isListening(): boolean;
  close(): Promise<void>;
}

const RECONNECT_MS = 1_000;
/** Time limit of connecting and of LISTEN. */
const ANSWER_MS = 2_000;

/** Creates a dedicated session for notifications. It misses those sent while disconnected, so callers must poll as well. */
export const createListener = ({
  url,
  name,
  channels,
  onNotification,
  lost: onLost,
  ready,
}: ListenerOptions): Listener => {
  let client: pg.Client | null = null;
  let listening = false;
  let closed = false;

  const connect = async (fresh: pg.Client): Promise<void> => {
    const lost = (): void => {
      if (client === fresh) {
        client = null;
        listening = false;
        onLost?.();
        setTimeout(ensure, RECONNECT_MS).unref();
      }
      void fresh.end().catch(() => undefined);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ channel, payload }) => {
      try {
        onNotification(channel, payload ?? '');
      } catch {
        // Any login may send any payload, so an invalid one is ignored; callers poll as well.
      }
    });
    try {
      await fresh.connect();
      await fresh.query(channels.map((channel) => `listen ${channel}`).join(';'));
      listening = client === fresh;
      if (listening) ready?.();
    } catch {
      lost();
    }
  };

  const ensure = (): void => {
    if (client || closed) return;
    client = new pg.Client({
      connectionString: url,
      application_name: name,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
    });
    void connect(client);
  };

  return {
    ensure,
    isListening: () => listening,
    close: async () => {
      closed = true;
      if (client) await endClient(client);
    },
  };
};
