import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The user that PostgreSQL runs as when this process is root, which PostgreSQL refuses to be. */
export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const READ = 4;
const ENTER = 1;

/** The outermost folder on the way to `path`, itself included, that the user may not enter; null if none. */
export function firstClosedFolder(path: string, user: SystemUser): string | null {
  const folders = [path];
  while (dirname(folders[0] as string) !== folders[0]) folders.unshift(dirname(folders[0] as string));
  return folders.find((folder) => !permits(folder, user, ENTER)) ?? null;
}

/** Whether the user can enter the folder and read and run all that is in it. */
export function canUse(folder: string, user: SystemUser): boolean {
  return firstClosedFolder(folder, user) === null && everythingReadable(folder, user);
}

function everythingReadable(folder: string, user: SystemUser): boolean {
  return readdirSync(folder, { withFileTypes: true }).every((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return permits(path, user, READ | ENTER) && everythingReadable(path, user);
    return permits(path, user, READ);
  });
}

/** Modes alone decide: asking as that user would take a process of its own. */
function permits(path: string, { uid, gid }: SystemUser, wanted: number): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return true;
  const { mode, uid: owner, gid: group } = status;
  const shift = owner === uid ? 6 : group === gid ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}
