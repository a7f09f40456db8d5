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
        const isOutside = NO_TRANSACTION.test(sql);
        const statements = isOutside ? [WAIT_FOR_LOCKS, ...statementsOf(sql), WAIT_BRIEFLY] : [sql];
        return {
          id: path,
          filePaths: [path],
          actions: {
            up: (pgm) => {
              if (isOutside) pgm.noTransaction();
              for (const statement of statements) pgm.sql(statement);
            },
            down: false,
          },
        };
      }),
    ),
};

/** Of a file without a function's body: each ends with a semicolon at the end of a line. */
const statementsOf = (sql: string): string[] => sql.split(/;\s*$/m).filter((text) => text.trim() !== '');

/** Names of the migrations of a folder, in order. */
export const migrationNames = (directory: string): string[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
