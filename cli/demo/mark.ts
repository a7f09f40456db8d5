/** The mark of a demo's folder: only a folder with it is removed, and only the process that it names is stopped. */
import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { identify } from '../../platform/embedded/processes.ts';

export const DEMO_MARK = 'doorplate-demo.json';

const markSchema = z.object({
  /** The folder's own path: a copy of the folder is no demo of this process. */
  folder: z.string(),
  /** `processes.ts`: a later process with the same pid has another start. */
  process: z.object({ pid: z.int().positive(), started: z.string().min(1) }),
  url: z.string().nullable(),
});
export type Mark = z.output<typeof markSchema>;

/** Makes the folder with its mark. @throws Error if something is there */
export function makeMarkedFolder(folder: string): void {
  mkdirSync(folder, { mode: process.getuid?.() === 0 ? 0o755 : 0o700 });
  writeMark(folder, null);
}

/** Writes the mark of this process. `url`: the dashboard's, once it is there. */
export function writeMark(folder: string, url: string | null): void {
  const self = identify(process.pid);
  if (self === null) throw new Error('/proc does not show this process');
  const mark: Mark = { folder: realpathSync(folder), process: self, url };
  const file = join(folder, DEMO_MARK);
  writeFileSync(`${file}.new`, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Reads the mark of a folder: `nothing` where there is no folder, `foreign` where it has no mark of its own. */
export function readMark(folder: string): Mark | 'nothing' | 'foreign' {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  if (status === undefined) return 'nothing';
  if (!status.isDirectory()) return 'foreign';
  try {
    const mark = markSchema.parse(JSON.parse(readFileSync(join(folder, DEMO_MARK), 'utf8')));
    return mark.folder === realpathSync(folder) ? mark : 'foreign';
  } catch {
    return 'foreign';
  }
}
