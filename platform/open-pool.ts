import pg from 'pg';
import type { Logger } from './log.ts';

/** A plan that was cached while a table was small must not scan it once it is large. */
const SETTINGS = '-c enable_seqscan=off';

/** Opens a connection pool of the service; a lost idle connection is logged, not thrown. `options`: settings of a session. */
export const openPool = (
  url: string,
  log: Pick<Logger, 'warn'>,
  options: Pick<
    pg.PoolConfig,
    'max' | 'application_name' | 'options' | 'connectionTimeoutMillis' | 'query_timeout' | 'idleTimeoutMillis'
  >,
): pg.Pool => {
  const settings = `${SETTINGS} ${options.options ?? ''}`;
  const pool = new pg.Pool({ connectionString: url, ...options, options: settings });
  pool.on('error', (error) => log.warn({ error: error.message }, 'lost a database connection'));
  return pool;
};
