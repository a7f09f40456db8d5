import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The user that PostgreSQL runs as when this process is root, as which PostgreSQL refuses to run. */
export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const READ = 4;
const ENTER = 1;

/** Returns the outermost folder of the path, itself included, that the user may not enter; null if none. */
export function firstClosedFolder(path: string, user: SystemUser): string | null {
  const folders = [path];
  while (dirname(folders[0] as string) !== folders[0]) folders.unshift(dirname(folders[0] as string));
  return folders.find((folder) => !permits(folder, user, ENTER)) ?? null;
}

/** Returns whether the user can enter the folder and read and execute its contents. */
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

/** Checks mode bits only, because a real check would need a process of that user. */
function permits(path: string, { uid, gid }: SystemUser, wanted: number): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return true;
  const { mode, uid: owner, gid: group } = status;
  const shift = owner === uid ? 6 : group === gid ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}
