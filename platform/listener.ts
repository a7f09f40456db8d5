import pg from 'pg';

export interface ListenerOptions {
  readonly url: string;
  /** As PostgreSQL shows it among its sessions. */
  readonly name: string;
  readonly channels: readonly string[];
  readonly heard: (channel: string, payload: string) => void;
}

export interface Listener {
  /** Connects unless it is connected; a connection that was lost is made again by the next call. */
  ensure(): void;
  close(): Promise<void>;
}

/** A session of its own for notifications. They may be missed while it is away: who listens must poll as well. */
export const createListener = ({ url, name, channels, heard }: ListenerOptions): Listener => {
  let client: pg.Client | null = null;
  let closed = false;

  const connect = async (fresh: pg.Client): Promise<void> => {
    const lost = (): void => {
      if (client === fresh) client = null;
      void fresh.end().catch(() => undefined);
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ channel, payload }) => heard(channel, payload ?? ''));
    try {
      await fresh.connect();
      await fresh.query(channels.map((channel) => `listen ${channel}`).join(';'));
    } catch {
      lost();
    }
  };

  return {
    ensure: () => {
      if (client || closed) return;
      client = new pg.Client({ connectionString: url, application_name: name });
      void connect(client);
    },
    close: async () => {
      closed = true;
      await client?.end().catch(() => undefined);
    },
  };
};
