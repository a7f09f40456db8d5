import type pg from 'pg';

/** A member's transaction that has a transaction number writes, if only to a catalogue. A shorter one may be a changed password. */
const END_WRITING = `
  select a.usename as user, pg_terminate_backend(a.pid) as ended
  from pg_stat_activity a
  join pg_auth_members m on m.member = a.usesysid
  join pg_roles g on g.oid = m.roleid and g.rolname = left(current_database(), 55) || '_analyst'
  where a.backend_xid is not null and a.xact_start < clock_timestamp() - interval '500 milliseconds'
    and a.usename <> current_user`;

/**
 * Ends sessions of analysts whose transactions write: each savepoint of one takes an entry of the server's lock table, and within
 * seconds no one could append or log in. PostgreSQL refuses an analyst neither savepoints nor `GRANT` and `ALTER ROLE` of itself.
 * It sees them only if the service's user may see and end sessions of others (docs/analytics.md).
 * @returns the users whose sessions it ended
 */
export const endWritingAnalysts = async (pool: pg.Pool): Promise<string[]> => {
  const { rows } = await pool.query<{ user: string }>({ name: 'end_writing_analysts', text: END_WRITING });
  return rows.map(({ user }) => user);
};
