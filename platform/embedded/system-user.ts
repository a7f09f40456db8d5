import { execFileSync } from 'node:child_process';
import { EmbeddedPostgresError, reason } from './error.ts';
import type { SystemUser } from './reach.ts';

/** Runs a program and returns what it printed. @throws when it is missing or fails */
export type RunProgram = (program: string, args: readonly string[]) => string;

const OWN_USER = 'doorplate';

const WAYS_TO_CREATE: readonly (readonly [string, ...string[]])[] = [
  ['useradd', '--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', OWN_USER],
  ['adduser', '--system', '--group', '--no-create-home', OWN_USER],
];

/**
 * Finds the user to run PostgreSQL as: `postgres` if it exists, otherwise `doorplate`, created if needed.
 * @throws EmbeddedPostgresError if no user exists or can be created
 */
export function findSystemUser(run: RunProgram = runProgram): SystemUser {
  return lookUp('postgres', run) ?? lookUp(OWN_USER, run) ?? create(run);
}

function lookUp(name: string, run: RunProgram): SystemUser | null {
  try {
    const [uid, gid] = [Number(run('id', ['-u', name])), Number(run('id', ['-g', name]))];
    // PostgreSQL would also refuse a second name for root.
    return uid > 0 ? { name, uid, gid } : null;
  } catch {
    return null;
  }
}

function create(run: RunProgram): SystemUser {
  const failures: string[] = [];
  for (const [program, ...args] of WAYS_TO_CREATE) {
    try {
      run(program, args);
    } catch (error) {
      failures.push(reason(error).split('\n')[0] as string);
    }
    const user = lookUp(OWN_USER, run);
    if (user !== null) return user;
  }
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root and no user "${OWN_USER}" could be created for it (${failures.join('; ')}): ` +
      'start as another user, or set DATABASE_URL',
  );
}

const runProgram: RunProgram = (program, args) =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
