import { constants, fchownSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { EmbeddedPostgresError, reason } from './error.ts';
import type { DatabaseLocation } from './location.ts';

const LOG_LIMIT_BYTES = 10_000_000;

/** Opens the log for PostgreSQL to append to. @throws EmbeddedPostgresError */
export function openLog({ base, logFile }: DatabaseLocation): number {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  try {
    const log = openSync(logFile, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
    // After a start as root in another user's folder, that user must be able to append to the log.
    const { uid, gid } = statSync(base);
    fchownSync(log, uid, gid);
    return log;
  } catch (error) {
    throw new EmbeddedPostgresError(`PostgreSQL's log cannot be written: ${reason(error)}`);
  }
}

/** Renames a long log before a start. @returns the offset at which the next start's lines begin */
export function rotateLog({ logFile }: DatabaseLocation): number {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size < LOG_LIMIT_BYTES) return size;
  renameSync(logFile, beside(logFile));
  return 0;
}

/**
 * Empties a long log while PostgreSQL appends to it, and keeps the end of what it held beside it: a user who may log in can have any
 * number of lines written, by logins that fail.
 */
export async function cutLog({ logFile }: DatabaseLocation): Promise<void> {
  const { size } = await stat(logFile);
  if (size < LOG_LIMIT_BYTES) return;
  const { O_NOFOLLOW, O_RDWR } = constants;
  const log = await open(logFile, O_RDWR | O_NOFOLLOW);
  try {
    await keepEnd(log, size, beside(logFile));
  } finally {
    // Even where the copy finds no room: the disk must not fill up.
    await log.truncate().finally(() => log.close());
  }
}

async function keepEnd(log: FileHandle, size: number, file: string): Promise<void> {
  const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants;
  const end = Buffer.alloc(LOG_LIMIT_BYTES);
  const { bytesRead } = await log.read(end, 0, end.length, size - end.length);
  const kept = await open(file, O_CREAT | O_NOFOLLOW | O_TRUNC | O_WRONLY, 0o600);
  await kept.writeFile(end.subarray(0, bytesRead)).finally(() => kept.close());
}

const beside = (logFile: string): string => `${logFile}.1`;

/** Returns the last lines of the log in one line, without those of every start. */
export function complaint({ logFile }: DatabaseLocation, from: number): string {
  const lines = readFileSync(logFile).subarray(from).toString('utf8').trim().split('\n');
  const words = lines.map((line) => line.replace(/^.*?\b(?:FATAL|PANIC|HINT|WARNING|LOG): +/, ''));
  const meaningful = words.filter((line) => !/^(starting|listening|shutting|database system)/.test(line));
  return meaningful.slice(-4).join(' / ');
}
