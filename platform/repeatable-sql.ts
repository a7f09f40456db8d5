import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { isOlder } from './release.ts';

/** SQL files that stand beside the TypeScript that calls their functions. */
const BESIDE_TYPESCRIPT = 'processors/**/*.sql';

/** A file that PostgreSQL rejected. */
export class RepeatableFailure extends Error {
  readonly file: string;
  constructor(file: string, cause: unknown) {
    super(`${file} failed`, { cause });
    this.file = file;
  }
}

/**
 * Runs the SQL files beside the TypeScript that have changed since they last ran (migrations/README.md), each in a
 * transaction of its own. An older release leaves what a newer one has run: its functions have the same meaning.
 * @param root the program's folder
 * @throws RepeatableFailure
 */
export const runRepeatables = async (client: pg.ClientBase, root: string, release: string): Promise<void> => {
  await client.query(
    'create table if not exists public.doorplate_repeatable (file text primary key, digest text not null, release text not null)',
  );
  const { rows } = await client.query<{ file: string; digest: string; release: string }>(
    'select file, digest, release from public.doorplate_repeatable',
  );
  const known = new Map(rows.map((row) => [row.file, row]));
  for (const file of globSync(BESIDE_TYPESCRIPT, { cwd: root }).sort()) {
    const sql = readFileSync(join(root, file), 'utf8');
    const digest = createHash('sha256').update(sql).digest('hex');
    const before = known.get(file);
    if (before && (before.digest === digest || isOlder(release, before.release))) continue;
    try {
      await client.query('begin');
      await client.query(sql);
      await client.query(
        `insert into public.doorplate_repeatable (file, digest, release) values ($1, $2, $3)
         on conflict (file) do update set digest = excluded.digest, release = excluded.release`,
        [file, digest, release],
      );
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw new RepeatableFailure(file, error);
    }
  }
};
