import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { EmbeddedPostgresError } from './error.ts';
import { identify, isAlive, type ProcessIdentity } from './processes.ts';

/** `own`: the server, one at a time, which keeps PostgreSQL running. `join`: a command that passes by. */
export type Mode = 'own' | 'join';

interface User extends ProcessIdentity {
  readonly id: string;
  readonly mode: Mode;
}

/**
 * Writes this process into the list of those that use the data folder, and drops dead ones from it. Call it and
 * `leave` under the folder's mutex alone.
 * @returns what `leave` wants to have
 * @throws EmbeddedPostgresError naming the process that owns the folder already
 */
export function enter(file: string, mode: Mode, dataDir: string): string {
  const others = living(file);
  const owner = others.find((user) => user.mode === 'own');
  if (mode === 'own' && owner !== undefined) {
    throw new EmbeddedPostgresError(`the data folder ${dataDir} is in use by process ${owner.pid}`);
  }
  const me = identify(process.pid);
  if (me === null) throw new EmbeddedPostgresError('/proc does not show this process: set DATABASE_URL');
  const id = randomUUID();
  save(file, [...others, { ...me, id, mode }]);
  return id;
}

/** Strikes this use off the list. @returns whether nobody uses the folder any more */
export function leave(file: string, id: string): boolean {
  const others = living(file).filter((user) => user.id !== id);
  save(file, others);
  return others.length === 0;
}

function living(file: string): User[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as User[]).filter(isAlive);
  } catch {
    // None yet, or cut short by a crash of the machine, which no user has survived.
    return [];
  }
}

function save(file: string, users: readonly User[]): void {
  const next = `${file}.${randomUUID()}`;
  writeFileSync(next, `${JSON.stringify(users)}\n`, { flag: 'wx', mode: 0o644 });
  renameSync(next, file);
}
