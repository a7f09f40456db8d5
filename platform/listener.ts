import pg from 'pg';
import { endClient } from './end-postgres.ts';

export interface ListenerOptions {
  readonly url: string;
  /** As PostgreSQL shows it among its sessions. */
  readonly name: string;
  readonly channels: readonly string[];
  readonly onNotification: (channel: string, payload: string) => void;
  /** What was heard may have been of a server that has crashed since. */
  readonly lost?: () => void;
  /** From now on notifications are heard. */
  readonly ready?: () => void;
}

export interface Listener {
  /** Connects unless it is connected. A connection that is lost is made again after a while, or by the next call. */
  ensure(): void;
  /** Whether it hears now. */
  isListening(): boolean;
  close(): Promise<void>;
}

const AGAIN_MS = 1_000;
/** A server that takes longer to connect or to listen is tried again. */
const ANSWER_MS = 2_000;

/** A session of its own for notifications. They may be missed while it is away: who listens must poll as well. */
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
        setTimeout(ensure, AGAIN_MS).unref();
      }
      void fresh.end().catch(() => undefined);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ channel, payload }) => {
      try {
        onNotification(channel, payload ?? '');
      } catch {
        // Whoever may log in to the database may say anything, an analyst too: who listens polls as well.
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
