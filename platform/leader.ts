import pg from 'pg';
import type { Logger } from 'pino';
import { createAlarm } from './alarm.ts';

/** How often a follower asks whether the leader is gone. */
const ASK_MS = 1_000;
/** Far longer than any batch takes: a session that was cut without a word gives the lead back then. */
const QUERY_MS = 60_000;
/** A leader's session that the server cannot reach is dropped after about this long. */
const KEEPALIVE =
  'set tcp_keepalives_idle = 2; set tcp_keepalives_interval = 1; set tcp_keepalives_count = 2';

export interface LeaderOptions {
  readonly name: string;
  readonly url: string;
  readonly log: Logger;
  /** Runs while this process leads. Returning or throwing gives the lead back; it is asked for again. */
  readonly run: (db: pg.Client, signal: AbortSignal) => Promise<void>;
}

/**
 * Runs something in one process of all, by a PostgreSQL advisory lock held by a session of its own: when the
 * process or its connection dies, another takes over within seconds. `run` must guard its writes itself, as
 * two leaders may overlap for a moment.
 */
export const lead = ({ name, url, log, run }: LeaderOptions): { stop(): Promise<void> } => {
  const stopping = new AbortController();
  const alarm = createAlarm();

  const once = async (): Promise<void> => {
    const db = new pg.Client({
      connectionString: url,
      application_name: `doorplate lead ${name}`,
      connectionTimeoutMillis: 2_000,
      query_timeout: QUERY_MS,
      keepAlive: true,
    });
    const leading = new AbortController();
    db.on('error', () => leading.abort());
    db.on('end', () => leading.abort());
    try {
      await db.connect();
      await db.query(KEEPALIVE);
      if (!(await waitForLock(db, leading.signal))) return;
      log.debug({ name }, 'leading');
      await run(db, AbortSignal.any([stopping.signal, leading.signal]));
    } finally {
      await db.end().catch(() => undefined);
    }
  };

  const waitForLock = async (db: pg.Client, lost: AbortSignal): Promise<boolean> => {
    while (!stopping.signal.aborted && !lost.aborted) {
      const { rows } = await db.query('select pg_try_advisory_lock(72390, hashtext($1)) as mine', [name]);
      if (rows[0]?.mine) return true;
      await alarm.wait(ASK_MS, stopping.signal);
    }
    return false;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await once().catch((error: unknown) => {
        if (!stopping.signal.aborted) log.warn({ name, error: String(error) }, 'lost the lead: trying again');
        return alarm.wait(ASK_MS, stopping.signal);
      });
    }
  })();

  return {
    stop: async () => {
      stopping.abort();
      await loop;
    },
  };
};
