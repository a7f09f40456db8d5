import pg from 'pg';
import type { Lease } from '../platform/leases/leases.ts';
import { endClient, IDLE_TRANSACTION, KEPT_ALIVE } from '../platform/postgres/pool.ts';

/** Time that a running query gets at shutdown. */
const ENDING_MS = 1_000;
/** Far longer than a batch takes: until then a session that the network has dropped keeps its read models from growing. */
const ANSWER_MS = 15_000;
const SESSION = `set search_path to read; set synchronous_commit to off; set enable_seqscan to off; set jit to off;
  set idle_in_transaction_session_timeout = '${IDLE_TRANSACTION}'`;

/** Runs work with a session of its own. Losing the session aborts the work. */
export const withSession = async (
  url: string,
  lease: Lease,
  signal: AbortSignal,
  work: (db: pg.ClientBase, signal: AbortSignal) => Promise<void>,
): Promise<void> => {
  const db = new pg.Client({
    connectionString: url,
    application_name: `doorplate projections ${lease.name}`,
    connectionTimeoutMillis: 2_000,
    query_timeout: ANSWER_MS,
    ...KEPT_ALIVE,
    pipeline: true,
  });
  const lost = new AbortController();
  const end = (): void => void endClient(db);
  // A query on a dead connection never returns and would keep the group from restarting.
  const endSoon = (): void => void setTimeout(end, ENDING_MS).unref();
  signal.addEventListener('abort', endSoon, { once: true });
  db.on('error', () => lost.abort());
  db.on('end', () => lost.abort());
  try {
    await db.connect();
    await db.query(SESSION);
    await work(db, AbortSignal.any([signal, lost.signal]));
  } finally {
    signal.removeEventListener('abort', endSoon);
    end();
  }
  if (lost.signal.aborted && !signal.aborted) throw new Error('the projections lost their database session');
};
