/** Database users who can read only the views of `analytics`. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Granted, grantAnalyst } from '../../cli/analytics/analysts.ts';

export interface Analyst {
  readonly granted: Granted;
  readonly db: pg.Client;
  /** Opens another session of the same user. */
  connect(): Promise<pg.Client>;
  rows(query: string): Promise<Record<string, unknown>[]>;
  /** Ends the sessions and drops the roles, which outlive the database. */
  leave(): Promise<void>;
}

/** Returns an unused user name: roles belong to the whole server. */
export const aUser = (): string => `analyst_${randomUUID().slice(0, 8)}`;

export const clientOf = ({ host, port, database, user, password }: Granted): pg.Client => {
  const client = new pg.Client({ host, port, database, user, password: password ?? '' });
  client.on('error', () => undefined);
  return client;
};

/** Grants, and logs in as the granted user. */
export const analystOf = async (url: string): Promise<Analyst> => {
  const { granted } = await grantAnalyst(url, aUser());
  const clients: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const client = clientOf(granted);
    await client.connect();
    clients.push(client);
    return client;
  };
  const db = await connect();
  return {
    granted,
    db,
    connect,
    rows: async (query) => (await db.query(query)).rows,
    leave: async () => {
      for (const client of clients) await client.end();
      await dropRoles(url, [granted.user, granted.role]);
    },
  };
};

/** Drops the roles that a test created. */
export const dropRoles = async (url: string, roles: readonly string[]): Promise<void> => {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    for (const role of roles) {
      const { rowCount } = await db.query('select from pg_roles where rolname = $1', [role]);
      if (rowCount === 0) continue;
      await db.query(`drop owned by ${pg.escapeIdentifier(role)}; drop role ${pg.escapeIdentifier(role)}`);
    }
  } finally {
    await db.end();
  }
};
