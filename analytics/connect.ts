import pg from 'pg';

/**
 * Opens a session of the service's user for what concerns analysts. A name without a schema is PostgreSQL's own in it: an analyst may
 * be allowed to put functions into `public`, which would run with the service's rights. `types`: parsers of values.
 */
export const connect = async (
  url: string,
  name: string,
  types?: pg.CustomTypesConfig,
): Promise<pg.Client> => {
  const dsn = new URL(url);
  // In the URL, whose settings pg would take alone.
  dsn.searchParams.set(
    'options',
    `${dsn.searchParams.get('options') ?? ''} -c search_path=pg_catalog`.trim(),
  );
  const db = new pg.Client({
    connectionString: dsn.href,
    application_name: name,
    ...(types && { types }),
  });
  db.on('error', () => undefined);
  await db.connect();
  return db;
};
