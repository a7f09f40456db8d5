import pg from 'pg';
import { allAllowed, runIfAllowed } from './allowed-statements.ts';

const id = pg.escapeIdentifier;
const text = pg.escapeLiteral;

/** Only a superuser can set these, and the analyst cannot change them. */
const SUPERUSER_SETTINGS: Readonly<Record<string, string>> = {
  temp_file_limit: '2GB',
  // RAISE LOG, and the text of a statement that fails, could fill the disk through the server's log: 8 GB a minute.
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
};

interface Powers {
  readonly temp: boolean;
  readonly more: boolean;
  readonly connects: boolean;
  /** Other databases that the user may connect to; null if none. */
  readonly elsewhere: string | null;
  readonly harms: boolean;
  /** Schemas that the user may create in; null if none. */
  readonly creates: string | null;
}

/**
 * Functions that read the locks of all sessions, for which sessions that take a lock have to wait: ten that read `pg_locks` in a loop
 * had each lookup refused.
 */
const OF_LOCKS = ['pg_blocking_pids', 'pg_isolation_test_session_is_blocked', 'pg_lock_status'];

/**
 * Functions of PostgreSQL with which any user can harm others: they write large objects or messages into the write-ahead
 * log, take advisory locks, which fill the server's lock table (45,000 of them stopped every append and login), use up
 * transaction ids (490,000 a second; after 2^31 during one open transaction the server refuses all writes), or create a file
 * per call.
 */
const HARMFUL = [
  ...OF_LOCKS,
  'brin_desummarize_range',
  'brin_summarize_new_values',
  'brin_summarize_range',
  'gin_clean_pending_list',
  'lo_creat',
  'lo_create',
  'lo_from_bytea',
  'lo_open',
  'lo_put',
  'lo_truncate',
  'lo_truncate64',
  'lo_unlink',
  'lowrite',
  'pg_advisory_lock',
  'pg_advisory_lock_shared',
  'pg_advisory_xact_lock',
  'pg_advisory_xact_lock_shared',
  'pg_current_xact_id',
  'pg_export_snapshot',
  'pg_logical_emit_message',
  'pg_try_advisory_lock',
  'pg_try_advisory_lock_shared',
  'pg_try_advisory_xact_lock',
  'pg_try_advisory_xact_lock_shared',
  'txid_current',
];

/** Revokes them in this database, which belongs to the service. Monitoring has a role that may still read locks. */
const revokeHarmful = async (db: pg.Client): Promise<void> => {
  const { rows } = await db.query<{ function: string; of_locks: boolean }>(
    `select oid::regprocedure::text as function, proname = any ($2) as of_locks from pg_proc
     where pronamespace = 'pg_catalog'::regnamespace and proname = any ($1)
       and has_function_privilege('public', oid, 'execute') order by oid`,
    [HARMFUL, OF_LOCKS],
  );
  for (const { function: name, of_locks } of rows) {
    if (!(await runIfAllowed(db, `revoke execute on function pg_catalog.${name} from public`))) return;
    if (of_locks) await runIfAllowed(db, `grant execute on function pg_catalog.${name} to pg_monitor`);
  }
};

/** Revokes connecting to the server's default databases if the service's user owns them. */
const revokeConnecting = async (db: pg.Client): Promise<void> => {
  const { rows } = await db.query<{ datname: string }>(
    `select datname from pg_database d join pg_roles r on r.oid = d.datdba
     where datname in ('postgres', 'template1') and datname <> current_database() and r.rolname = current_user
       and has_database_privilege('public', d.oid, 'connect') order by datname`,
  );
  for (const { datname } of rows) {
    await runIfAllowed(db, `revoke connect on database ${id(datname)} from public`);
  }
};

/** Sets limits that need more privileges. @returns a note for each that could not be set */
export const limitMore = async (db: pg.Client, user: string): Promise<string[]> => {
  const notes: string[] = [];
  const database = id(db.database ?? '');
  const limits = Object.entries(SUPERUSER_SETTINGS).map(
    ([name, value]) => `alter role ${id(user)} in database ${database} set ${name} = ${text(value)}`,
  );
  if (!(await allAllowed(db, limits))) {
    notes.push(
      `temporary files of ${user} and what it writes to the server's log are not limited: a superuser may run ${limits.join('; ')}`,
    );
  }
  // temp_file_limit does not cover temporary tables. The service uses none.
  await runIfAllowed(db, `revoke temporary on database ${database} from public`);
  // A user who may update this view may also lock it, which blocks pg_dump.
  await runIfAllowed(db, 'revoke update on pg_catalog.pg_settings from public');
  // Before PostgreSQL 15 every user may create in it.
  await runIfAllowed(db, 'revoke create on schema public from public');
  await revokeHarmful(db);
  await revokeConnecting(db);
  const { rows } = await db.query<Powers>(
    `select has_database_privilege($1, current_database(), 'temp') as temp,
            (select string_agg(datname, ', ' order by datname) from pg_database
             where datname <> current_database() and datallowconn and has_database_privilege($1, oid, 'connect'))
              as elsewhere,
            exists (select from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname = any ($2)
                      and has_function_privilege($1, oid, 'execute')) as harms,
            (select string_agg(nspname, ', ' order by nspname) from pg_namespace
             where nspname !~ '^pg_' and has_schema_privilege($1, oid, 'create')) as creates,
            has_database_privilege($1, current_database(), 'connect') as connects,
            has_schema_privilege($1, 'read', 'usage') or has_schema_privilege($1, 'work', 'usage')
              or has_schema_privilege($1, 'eventlog', 'usage') or pg_has_role($1, 'pg_read_all_data', 'member') as more`,
    [user, HARMFUL],
  );
  const [found] = rows;
  if (found?.elsewhere)
    notes.push(`${user} may connect to ${found.elsewhere}: their owners can revoke connect from public`);
  if (found?.harms)
    notes.push(
      `${user} may make large objects, logical messages and any number of advisory locks, use up transaction numbers, and hold others back by reading locks: a superuser can revoke that from public`,
    );
  if (found?.creates)
    notes.push(`${user} may create in the schema ${found.creates}: its owner can revoke that from public`);
  if (found?.temp)
    notes.push(`${user} may make temporary tables: the database's owner can revoke it from public`);
  if (found?.more) notes.push(`${user} may read more than analytics: another role or grant gives it that`);
  if (!found?.connects) notes.push(`${user} may not connect: the database's owner can grant it`);
  return notes;
};
