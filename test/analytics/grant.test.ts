import { pbkdf2Sync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { GrantRefused, grantAnalyst, revokeAnalyst, scramVerifier } from '../../cli/analytics/analysts.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { migrate } from '../../platform/postgres/migrate.ts';
import { partners } from '../../projections/partners/keys.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { aUser, clientOf, dropRoles } from '../support/analysts.ts';
import { administer, type TestDatabase, testDatabase, withDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: pg.Client;
const roles: string[] = [];
const user = (): string => {
  const name = aUser();
  roles.push(name);
  return name;
};
beforeAll(async () => {
  database = await testDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
});
afterAll(async () => {
  await db.end();
  await dropRoles(database.url, roles);
  await database.drop();
});

const grant = async (name: string) => {
  const made = await grantAnalyst(database.url, name);
  if (!roles.includes(made.granted.role)) roles.push(made.granted.role);
  return made;
};
const reads = async (client: pg.Client) =>
  (await client.query('select count(*) from analytics.units')).rowCount;
const existing = async (options: string): Promise<string> => {
  const name = user();
  await db.query(`create role ${name} ${options}`);
  return name;
};

describe('granting', () => {
  it('creates a user that logs in with a password shown once, and keeps it when repeated', async () => {
    const name = user();
    const { granted } = await grant(name);
    expect(granted).toMatchObject({ user: name, database: new URL(database.url).pathname.slice(1) });
    expect(granted.role).toMatch(/_analyst$/);
    const client = clientOf(granted);
    await client.connect();
    expect(await reads(client)).toBe(1);
    await client.end();
    expect((await grant(name)).granted.password).toBeNull();
  });

  it('gives an existing user the same rights and keeps its password', async () => {
    const name = await existing(`login password 'its own'`);
    expect((await grant(name)).granted.password).toBeNull();
    const client = clientOf({ ...(await grant(name)).granted, password: 'its own' });
    await client.connect();
    expect(await reads(client)).toBe(1);
    await client.end();
  });

  it('reports what else a user can see', async () => {
    const name = await existing('login');
    await db.query(`grant usage on schema read to ${name}`);
    expect((await grant(name)).notes).toContainEqual(expect.stringContaining('may read more than analytics'));
    await db.query(`revoke usage on schema read from ${name}`);
  });

  it('refuses superusers, the group itself, and invalid names', async () => {
    const { granted } = await grant(user());
    for (const name of [
      await existing('superuser'),
      db.user ?? '',
      granted.role,
      '',
      'a\nb',
      'x'.repeat(64),
    ]) {
      await expect(grantAnalyst(database.url, name), name).rejects.toThrow(GrantRefused);
    }
  });

  it('may run several times at once', async () => {
    const names = [user(), user(), user(), user()];
    const made = await Promise.all(names.map(grant));
    expect(new Set(made.map(({ granted }) => granted.role)).size).toBe(1);
  });

  it('includes views that a later version adds', async () => {
    const { granted } = await grant(user());
    await db.query('create view analytics.later as select 1 as n where analytics.time_is_limited()');
    const client = clientOf(granted);
    await client.connect();
    expect((await client.query('select n from later')).rows).toEqual([{ n: 1 }]);
    await client.end();
    await db.query('drop view analytics.later');
  });
});

describe('an analyst', () => {
  const analyst = async () => {
    const { granted } = await grant(user());
    const client = clientOf(granted);
    await client.connect();
    await client.query('set default_transaction_read_only = off');
    return { client, granted };
  };

  it('cannot make large objects or messages in the write-ahead log, nor enter the database postgres', async () => {
    const { client, granted } = await analyst();
    for (const call of [
      `lo_from_bytea(0, 'x')`,
      'lo_create(0)',
      'lo_creat(-1)',
      `lo_put(1, 0, 'x')`,
      `pg_logical_emit_message(true, 'x', repeat('x', 30000000))`,
      `pg_logical_emit_message(false, 'x', 'x')`,
    ]) {
      await expect(client.query(`select ${call}`), call).rejects.toThrow(/permission denied for function/);
    }
    await client.end();
    const elsewhere = clientOf({ ...granted, database: 'postgres' });
    await expect(elsewhere.connect()).rejects.toThrow('permission denied for database');
  });

  it('cannot take a lock that the service takes', async () => {
    const { client, granted } = await analyst();
    for (const table of [
      'eventlog.writer',
      'work.only_one_rebuild',
      'work.only_one_rotation',
      'work.only_one_grant',
      'public.doorplate_migrating',
    ]) {
      await client.query('rollback');
      await expect(client.query(`begin; lock table ${table} in access share mode`), table).rejects.toThrow(
        /permission denied/,
      );
    }
    await client.query('rollback');
    await expect(client.query('select from eventlog.writer for update')).rejects.toThrow(/permission denied/);
    await expect(client.query('select eventlog.lock_writer()')).rejects.toThrow(/permission denied/);
    // Another login, which may take advisory locks, blocks nothing with them.
    const other = await existing(`login password 'its own'`);
    const holder = clientOf({ ...granted, user: other, password: 'its own' });
    await db.query(`grant connect on database "${granted.database}" to ${other};
      grant execute on function pg_advisory_lock(bigint), pg_advisory_lock(integer, integer) to ${other}`);
    await holder.connect();
    await holder.query(
      'select pg_advisory_lock(7239001), pg_advisory_lock(72390, n) from generate_series(0, 9) n',
    );
    const append = `select outcome from eventlog.append_batch(array['a-1'], array[-1], array[1],
      array[gen_random_uuid()], array['x'], array['{}'::json], array['{}'::json])`;
    await db.query(`set statement_timeout = '5s'`);
    expect((await db.query(append)).rows).toEqual([{ outcome: 'appended' }]);
    await db.query('reset statement_timeout');
    // The migrations of a start do not wait for them either.
    expect(await migrate(database.url)).toEqual([]);
    await holder.end();
    await client.end();
  });
});

describe('revoking', () => {
  it('refuses open sessions from their next statement on, and drops the created user', async () => {
    const { granted } = await grant(user());
    const client = clientOf(granted);
    await client.connect();
    expect(await revokeAnalyst(database.url, granted.user)).toEqual({ user: granted.user, dropped: true });
    await expect(reads(client)).rejects.toThrow('permission denied');
    await client.end().catch(() => undefined);
    await expect(clientOf(granted).connect()).rejects.toThrow('authentication failed');
    await expect(revokeAnalyst(database.url, granted.user)).rejects.toThrow('analyst_not_found');
  });

  it('keeps a user that existed before, with its own settings', async () => {
    const name = await existing(`login password 'its own'`);
    const { granted } = await grant(name);
    expect(await revokeAnalyst(database.url, name)).toEqual({ user: name, dropped: false });
    const client = clientOf({ ...granted, password: 'its own' });
    await client.connect();
    expect((await client.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
    await expect(reads(client)).rejects.toThrow('permission denied');
    await client.end();
  });
});

/** The commands of docs/analytics.md for a superuser, except for the database `postgres`, which all tests share. */
const statementsOfTheDocs = (): string => {
  const page = readFileSync(new URL('../../docs/analytics.md', import.meta.url), 'utf8');
  const [, sql = ''] = /```sql\nrevoke connect[^\n]*\n(.*?)```/s.exec(page) ?? [];
  expect(sql).toContain('revoke execute');
  return sql;
};

/** Without the right to read locks, a rebuild tries again until its reader is gone. */
const rebuildBesideReader = async (url: string, reader: pg.Client): Promise<void> => {
  await reader.connect();
  await reader.query('begin; select * from analytics.partners');
  const store = createPostgresEventStore({ url, now: Date.now });
  const onWaiting = () => void reader.query('commit');
  await rebuild({ store, url, projections: [partners], onWaiting });
  await store.close();
  await reader.end();
};

describe('where the service is no superuser', () => {
  it('the migrations run, granting prints commands for a superuser, and granting works once roles may be created', async () => {
    const { adminUrl, prefix } = inject('testServer');
    const owner = user();
    const name = `${prefix}${owner}`;
    await administer(adminUrl, `create role ${owner} login password 'o'`);
    await administer(adminUrl, `create database ${name} owner ${owner}`);
    const url = new URL(withDatabase(adminUrl, name));
    url.username = owner;
    url.password = 'o';
    const analyst = user();
    try {
      await migrate(url.href);
      const refused = await grantAnalyst(url.href, analyst).catch((error: Error) => error.message);
      expect(refused).toContain(`PostgreSQL does not let ${owner} do this: permission denied to create role`);
      expect(refused).toContain('grant select on all tables in schema analytics to');
      expect(refused).toContain(`password '…'`);
      await administer(adminUrl, `alter role ${owner} createrole`);
      const { granted, notes } = await grantAnalyst(url.href, analyst);
      expect(notes).toEqual([
        expect.stringContaining('temporary files'),
        expect.stringContaining('may connect to'),
        expect.stringContaining('large objects, logical messages and any number of advisory locks'),
      ]);
      const client = clientOf(granted);
      await client.connect();
      expect(await reads(client)).toBe(1);
      await client.end();
      await administer(withDatabase(adminUrl, name), statementsOfTheDocs());
      expect((await grantAnalyst(url.href, analyst)).notes.join()).not.toContain('advisory locks');
      await rebuildBesideReader(url.href, clientOf(granted));
      expect(await revokeAnalyst(url.href, analyst)).toMatchObject({ dropped: true });

      const known = user();
      await administer(url.href, `create role ${known} login`);
      await grantAnalyst(url.href, known);
      await administer(adminUrl, `grant ${granted.role} to ${known}`);
      await expect(revokeAnalyst(url.href, known)).rejects.toThrow(`${known} is still in ${granted.role}`);
      await administer(adminUrl, `revoke ${granted.role} from ${known}`);
      expect(await revokeAnalyst(url.href, known)).toEqual({ user: known, dropped: false });
      await dropRoles(withDatabase(adminUrl, name), [granted.role]);
    } finally {
      await administer(adminUrl, `drop database if exists ${name} with (force)`);
    }
  });
});

describe("PostgreSQL's password verifier", () => {
  it('is computed as RFC 5802 defines', () => {
    // The test above logs in with the password, so the server accepts it. Here: another password gives another
    // verifier.
    const salt = Buffer.alloc(16, 1);
    expect(scramVerifier('pencil', salt)).toBe(scramVerifier('pencil', salt));
    expect(scramVerifier('pencil', salt)).not.toBe(scramVerifier('pen', salt));
    expect(scramVerifier('pencil')).not.toContain(
      pbkdf2Sync('pencil', salt, 4096, 32, 'sha256').toString('base64'),
    );
  });
});
