import { notifyIfRoom } from './channels.ts';
import { endPool } from './end-postgres.ts';
import { openPool } from './open-pool.ts';

export interface Notice {
  readonly channel: string;
  readonly payload: string;
}

/** Sends notifications of PostgreSQL that may be lost, because listeners poll as well. */
export interface Notifier {
  notify(notices: readonly Notice[]): void;
  close(): Promise<void>;
}

/** Notices that wait; the oldest are dropped. */
const MAX_WAITING = 1_000;
const LIMIT_MS = 2_000;

/**
 * Creates a notifier with a connection of its own, opened at the first notice. A commit that notifies waits for a lock of the whole
 * server, which any database user can hold nearly always by notifying much: no transaction that others wait for may notify, and no
 * connection that others need.
 */
export const createNotifier = (url: string): Notifier => {
  const pool = openPool(
    url,
    { warn: () => undefined },
    {
      max: 1,
      application_name: 'doorplate notify',
      options: '-c synchronous_commit=off',
      // A connection that is cut off without a reset never answers.
      connectionTimeoutMillis: LIMIT_MS,
      query_timeout: LIMIT_MS,
    },
  );
  let waiting = new Map<string, Notice>();
  let isSending = false;

  const sendAll = async (): Promise<void> => {
    isSending = true;
    while (waiting.size > 0) {
      const notices = [...waiting.values()];
      waiting = new Map();
      const values = [notices.map(({ channel }) => channel), notices.map(({ payload }) => payload)];
      await pool.query({ name: 'notify', text: NOTIFY, values }).catch(() => undefined);
    }
    isSending = false;
  };

  return {
    notify: (notices) => {
      for (const notice of notices) {
        const key = `${notice.channel} ${notice.payload}`;
        // To the end, behind those that are older.
        waiting.delete(key);
        waiting.set(key, notice);
      }
      for (const oldest of waiting.keys()) {
        if (waiting.size <= MAX_WAITING) break;
        waiting.delete(oldest);
      }
      if (!isSending) void sendAll();
    },
    close: () => endPool(pool),
  };
};

const NOTIFY = `
  select ${notifyIfRoom('n.channel', 'n.payload')} from unnest($1::text[], $2::text[]) as n (channel, payload)`;
