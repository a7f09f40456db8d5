import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { shellQuoted } from '../../http/contract/shell-text.ts';
import { openClient } from '../../platform/postgres/pool.ts';

/** PostgreSQL's own defaults. */
const ITERATIONS = 4_096;
const SALT_BYTES = 16;

/**
 * Makes PostgreSQL's stored form of a password (RFC 5802, SCRAM-SHA-256). Passing it instead of the password keeps the
 * password out of statements and server logs. `password` in ASCII.
 */
export function scramVerifier(password: string, salt = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const keyed = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64');
  const server = keyed('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}

/** PostgreSQL or a rule of the product refuses the grant. The message is for the operator. */
export class GrantRefused extends Error {}

async function runAll(db: pg.Client, statements: readonly string[]): Promise<void> {
  for (const statement of statements) {
    await db.query(statement).catch((error: unknown) => {
      if ((error as { code?: string }).code !== '42501') throw error;
      const why = `PostgreSQL does not let ${db.user} do this: ${(error as Error).message}`;
      const instead = statements
        .map((each) => `  ${each.replace(/ password '.*'/, " password '…'")};`)
        .join('\n');
      throw new GrantRefused(`${why}. A superuser can, in the database ${db.database}:\n${instead}`);
    });
  }
}

async function runIfAllowed(db: pg.Client, statement: string): Promise<boolean> {
  await db.query('savepoint more');
  try {
    await db.query(statement);
    return true;
  } catch (error) {
    // XX000: a concurrent grant has changed the same row.
    if (!['42501', 'XX000'].includes((error as { code?: string }).code ?? '')) throw error;
    await db.query('rollback to more');
    return false;
  }
}

/** Connection data of an analyst. */
export interface Granted {
  readonly user: string;
  /** Role with access to the views. */
  readonly role: string;
  readonly database: string;
  /** Address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Shown only here; null: the user existed and keeps its password. */
  readonly password: string | null;
  readonly connect: string;
}

export interface Grant {
  readonly granted: Granted;
  /** Limits that could not be set, one sentence each. */
  readonly notes: readonly string[];
}

/** Comment on users that this command created; only these are dropped. */
const MADE_HERE = 'Made by doorplate analytics grant';
const CONNECTIONS = 5;

/** Session defaults. docs/adr/0013 lists what an analyst cannot change. */
const SETTINGS: Readonly<Record<string, string>> = {
  search_path: 'analytics',
  timezone: 'UTC',
  default_transaction_read_only: 'on',
  statement_timeout: '60s',
  idle_in_transaction_session_timeout: '60s',
  lock_timeout: '5s',
  work_mem: '32MB',
};

const id = pg.escapeIdentifier;
const text = pg.escapeLiteral;

/**
 * Creates a user with access to the views of `analytics` and nothing else, or grants an existing user that access. Idempotent;
 * a repeat updates the role.
 * @throws GrantRefused; nothing is changed then
 */
export const grantAnalyst = (url: string, user: string): Promise<Grant> =>
  inTransaction(url, async (db) => {
    const role = await groupOf(db);
    const known = await findUser(db, user, role);
    if (Buffer.byteLength(user) > 63 || /^$|\p{Cc}/u.test(user))
      throw new GrantRefused(`invalid_name: ${user}`);
    if (user === role) throw new GrantRefused(`${user} is the role itself: name a user`);
    if (known?.everything) throw new GrantRefused(`${user} sees everything already: name another user`);

    const password = known ? null : randomBytes(24).toString('base64url');
    const statements = [
      ...((await findUser(db, role, role)) ? [] : [`create role ${id(role)} nologin`]),
      `grant connect on database ${id(db.database ?? '')} to ${id(role)}`,
      `grant usage on schema analytics to ${id(role)}`,
      `grant select on all tables in schema analytics to ${id(role)}`,
      `grant execute on all functions in schema analytics to ${id(role)}`,
      // Covers views that a later version adds.
      `alter default privileges in schema analytics grant select on tables to ${id(role)}`,
      `alter default privileges in schema analytics grant execute on functions to ${id(role)}`,
      ...(password === null
        ? []
        : [
            `create role ${id(user)} login connection limit ${CONNECTIONS} password ${text(scramVerifier(password))}`,
            `comment on role ${id(user)} is ${text(MADE_HERE)}`,
          ]),
      `grant ${id(role)} to ${id(user)}`,
      ...Object.entries(SETTINGS).map(
        ([name, value]) =>
          `alter role ${id(user)} in database ${id(db.database ?? '')} set ${name} = ${text(value)}`,
      ),
    ];
    await runAll(db, statements);
    const notes = await limitMore(db, user);
    const { host, port, database = '' } = db;
    const connect = `psql ${shellQuoted(conninfo({ host, port, dbname: database, user }))}`;
    return { granted: { user, role, database, host, port, password, connect }, notes };
  });

/** Writes a connection string of libpq (PostgreSQL, 32.1.1.1), whose values may hold blanks and quotes. */
const conninfo = (values: Readonly<Record<string, string | number>>): string =>
  Object.entries(values)
    .map(([name, value]) => [name, String(value)] as const)
    .map(([name, text]) =>
      /^[^\s'\\]+$/.test(text) ? `${name}=${text}` : `${name}='${text.replaceAll(/['\\]/g, '\\$&')}'`,
    )
    .join(' ');

/**
 * Revokes the access; sessions of the user are refused from their next statement on. @returns whether the user was dropped
 * @throws GrantRefused; nothing is changed then
 */
export const revokeAnalyst = (url: string, user: string): Promise<{ user: string; dropped: boolean }> =>
  inTransaction(url, async (db) => {
    const role = await groupOf(db);
    const known = await findUser(db, user, role);
    if (!known?.analyst) throw new GrantRefused(`analyst_not_found: ${user}`);
    await runAll(db, [
      `revoke ${id(role)} from ${id(user)}`,
      `alter role ${id(user)} in database ${id(db.database ?? '')} reset all`,
      ...(known.made_here ? [`drop role ${id(user)}`] : []),
    ]);
    // PostgreSQL only revokes what this user has granted, and warns about other grants.
    if ((await findUser(db, user, role))?.analyst)
      throw new GrantRefused(`${user} is still in ${role}: another user granted that and can revoke it`);
    return { user, dropped: known.made_here };
  });

/**
 * Returns the role of this database. Roles belong to the whole server, and analysts of one installation must not see
 * another. PostgreSQL limits names to 63 bytes.
 */
async function groupOf(db: pg.Client): Promise<string> {
  const { rows } = await db.query<{ role: string }>(
    `select (left(current_database(), 55) || '_analyst')::name::text as role`,
  );
  return rows[0]?.role ?? '';
}

async function findUser(db: pg.Client, user: string, role: string) {
  const { rows } = await db.query<{ everything: boolean; analyst: boolean; made_here: boolean }>(
    `select r.rolsuper or r.oid = n.nspowner or pg_has_role(r.oid, n.nspowner, 'member') as everything,
            exists (select from pg_auth_members m join pg_roles g on g.oid = m.roleid
                    where m.member = r.oid and g.rolname = $2) as analyst,
            coalesce(shobj_description(r.oid, 'pg_authid') = $3, false) as made_here
     from pg_roles r, pg_namespace n where r.rolname = $1 and n.nspname = 'analytics'`,
    [user, role, MADE_HERE],
  );
  return rows[0] ?? null;
}

async function inTransaction<T>(url: string, work: (db: pg.Client) => Promise<T>): Promise<T> {
  const db = await openClient(url, 'doorplate analytics');
  try {
    await db.query("begin; set local idle_in_transaction_session_timeout = '3s'");
    // Concurrent changes of roles would both fail, because roles are rows of shared catalogues.
    await db.query('lock table work.only_one_grant in exclusive mode');
    const result = await work(db);
    await db.query('commit');
    return result;
  } finally {
    await db.end();
  }
}

interface Powers {
  readonly temp: boolean;
  readonly more: boolean;
  readonly connects: boolean;
  /** Other databases that the user may connect to; null if none. */
  readonly elsewhere: string | null;
  readonly harms: boolean;
}

/**
 * Functions with which any user can harm the service: they write large objects or messages into the write-ahead log, or take
 * advisory locks, which fill the server's lock table.
 */
const HARMFUL =
  '^(lo_(creat|create|from_bytea|open|put|truncate|truncate64|unlink)|lowrite|pg_logical_emit_message|pg_(try_)?advisory_(xact_)?lock(_shared)?)$';

/** Revokes them in this database, which belongs to the service. */
async function revokeHarmful(db: pg.Client): Promise<void> {
  const { rows } = await db.query<{ function: string }>(
    `select oid::regprocedure::text as function from pg_proc
     where pronamespace = 'pg_catalog'::regnamespace and proname ~ $1
       and has_function_privilege('public', oid, 'execute') order by oid`,
    [HARMFUL],
  );
  for (const { function: name } of rows) {
    if (!(await runIfAllowed(db, `revoke execute on function pg_catalog.${name} from public`))) return;
  }
}

/** Revokes connecting to the server's default databases if the service's user owns them. */
async function revokeConnecting(db: pg.Client): Promise<void> {
  const { rows } = await db.query<{ datname: string }>(
    `select datname from pg_database d join pg_roles r on r.oid = d.datdba
     where datname in ('postgres', 'template1') and datname <> current_database() and r.rolname = current_user
       and has_database_privilege('public', d.oid, 'connect') order by datname`,
  );
  for (const { datname } of rows) {
    await runIfAllowed(db, `revoke connect on database ${id(datname)} from public`);
  }
}

/** Sets limits that need more privileges. @returns a note for each that could not be set */
async function limitMore(db: pg.Client, user: string): Promise<string[]> {
  const database = id(db.database ?? '');
  const notes: string[] = [];
  // Only a superuser can set it, and the analyst cannot change it.
  const limit = `alter role ${id(user)} in database ${database} set temp_file_limit = '2GB'`;
  if (!(await runIfAllowed(db, limit)))
    notes.push(`temporary files of ${user} are not limited: a superuser may run ${limit}`);
  // temp_file_limit does not cover temporary tables. The service uses none.
  await runIfAllowed(db, `revoke temporary on database ${database} from public`);
  await revokeHarmful(db);
  await revokeConnecting(db);
  const { rows } = await db.query<Powers>(
    `select has_database_privilege($1, current_database(), 'temp') as temp,
            (select string_agg(datname, ', ' order by datname) from pg_database
             where datname <> current_database() and datallowconn and has_database_privilege($1, oid, 'connect'))
              as elsewhere,
            exists (select from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname ~ $2
                      and has_function_privilege($1, oid, 'execute')) as harms,
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
      `${user} may make large objects, logical messages and any number of advisory locks: a superuser can revoke that from public`,
    );
  if (found?.temp)
    notes.push(`${user} may make temporary tables: the database's owner can revoke it from public`);
  if (found?.more) notes.push(`${user} may read more than analytics: another role or grant gives it that`);
  if (!found?.connects) notes.push(`${user} may not connect: the database's owner can grant it`);
  return notes;
}
