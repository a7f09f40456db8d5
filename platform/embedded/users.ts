import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { EmbeddedPostgresError } from './error.ts';
import { identify, isAlive, type ProcessIdentity } from './processes.ts';

/** `own`: the one server, which keeps PostgreSQL running. `join`: a short-lived command. */
export type Mode = 'own' | 'join';

interface User extends ProcessIdentity {
  readonly id: string;
  readonly mode: Mode;
}

/**
 * Adds this process to the users of the data folder and removes dead ones. Call it and `leave` only under the folder's
 * mutex.
 * @returns the id for `leave`
 * @throws EmbeddedPostgresError naming the process that already owns the folder
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

/** Removes an entry. @returns whether no process uses the folder any more */
export function leave(file: string, id: string): boolean {
  const others = living(file).filter((user) => user.id !== id);
  save(file, others);
  return others.length === 0;
}

function living(file: string): User[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as User[]).filter(isAlive);
  } catch {
    // Missing, or truncated by a machine crash, after which no user is alive.
    return [];
  }
}

function save(file: string, users: readonly User[]): void {
  const next = `${file}.${randomUUID()}`;
  writeFileSync(next, `${JSON.stringify(users)}\n`, { flag: 'wx', mode: 0o600 });
  renameSync(next, file);
}
