import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RunnerOption } from 'node-pg-migrate';

type Strategy = NonNullable<RunnerOption['migrationLoaderStrategies']>[number];

/** The first line of a file whose statements run one by one, each by itself (migrations/README.md). */
const NO_TRANSACTION = /^-- No transaction\b/;
/** An index that is built beside the appends waits for long queries, and nobody waits for it. */
const WAIT_FOR_LOCKS = 'set lock_timeout = 0';
const WAIT_BRIEFLY = 'reset lock_timeout';

/** How node-pg-migrate reads the files. */
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

/** The statements of a file that runs in no transaction, each of which ends with its line; null: it runs in one. */
export const statementsOutside = (sql: string): readonly string[] | null =>
  NO_TRANSACTION.test(sql) ? sql.split(/;\s*$/m).filter((text) => text.trim() !== '') : null;

/** Names of the migrations of a folder, in order. */
export const migrationNames = (directory: string): string[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
