import pg from 'pg';

/** Settings of a PostgreSQL whose statements are counted. */
export const COUNTING_STATEMENTS = [
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.max=1000',
];

/** The work of a PostgreSQL so far. */
export interface DatabaseWork {
  readonly statements: number;
  readonly walBytes: number;
  readonly logBytes: number;
  /** The log, the read models and all else of the database. */
  readonly diskBytes: number;
  readonly connections: number;
}

/** Reads the statistics of a PostgreSQL over a separate session. `url` may name any of its databases. */
export const openDatabaseWork = async (url: string) => {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  await client.connect();
  await client.query('create extension if not exists pg_stat_statements');
  return {
    read: async (): Promise<DatabaseWork> => {
      const { rows } = await client.query(READ);
      const { statements, wal, log, disk, connections } = rows[0];
      return {
        statements: Number(statements),
        walBytes: Number(wal),
        logBytes: Number(log),
        diskBytes: Number(disk),
        connections: Number(connections),
      };
    },
    close: () => client.end(),
  };
};

const READ = `
  select (select coalesce(sum(calls), 0) from pg_stat_statements) as statements,
         pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal,
         coalesce(pg_total_relation_size(to_regclass('eventlog.event')), 0) as log,
         pg_database_size(current_database()) as disk,
         (select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid())
           as connections`;
