import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RunnerOption } from 'node-pg-migrate';

type Strategy = NonNullable<RunnerOption['migrationLoaderStrategies']>[number];

/** First line of a file whose statements run one by one, outside a transaction (migrations/README.md). */
const NO_TRANSACTION = /^-- No transaction\b/;
/** A concurrent index build may wait for long queries, because no other query waits for it. */
const WAIT_FOR_LOCKS = 'set lock_timeout = 0';
const WAIT_BRIEFLY = 'reset lock_timeout';

/** Loads migrations for node-pg-migrate. */
export const sqlFiles: Strategy = {
  extensions: ['.sql'],
  loader: (paths) =>
    Promise.all(
      paths.map(async (path) => {
        const sql = await readFile(path, 'utf8');
        const outside = statementsOutside(sql);
        const statements = outside === null ? [sql] : [WAIT_FOR_LOCKS, ...outside, WAIT_BRIEFLY];
        return {
          id: path,
          filePaths: [path],
          actions: {
            up: (pgm) => {
              if (outside !== null) pgm.noTransaction();
              for (const statement of statements) pgm.sql(statement);
            },
            down: false,
          },
        };
      }),
    ),
};

/** Splits a file that runs outside a transaction into its statements, each ending with its line; null if it runs in one. */
export const statementsOutside = (sql: string): readonly string[] | null =>
  NO_TRANSACTION.test(sql) ? sql.split(/;\s*$/m).filter((text) => text.trim() !== '') : null;

/** Lists a folder's migrations in order. */
export const migrationNames = (directory: string): string[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
