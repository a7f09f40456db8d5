/** The releases of an upgrade storm: this tree, and copies of it with made-up changes in a temporary folder. */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RELEASE } from '../../../platform/postgres/upgrade-path.ts';
import { CHANGES, type Change, READING, WRITING } from './made-up-changes.ts';

export interface Release {
  readonly name: string;
  /** The folder of its program. */
  readonly folder: string;
}

export interface Releases {
  readonly now: Release;
  readonly reading: Release;
  readonly writing: Release;
  remove(): void;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Folders that the program does not need. */
const LEFT_OUT = ['.git', 'bench', 'clients', 'docs', 'node_modules', 'test'];

/**
 * @throws when a file of this tree lacks the text that a made-up change replaces: then update `made-up-changes.ts`
 */
export const makeReleases = (): Releases => {
  const base = mkdtempSync(join(tmpdir(), 'doorplate-releases-'));
  return {
    now: { name: RELEASE, folder: ROOT },
    reading: makeRelease(base, READING),
    writing: makeRelease(base, WRITING),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
};

const makeRelease = (base: string, name: keyof typeof CHANGES): Release => {
  const folder = join(base, name);
  for (const entry of readdirSync(ROOT).filter((one) => !LEFT_OUT.includes(one))) {
    cpSync(join(ROOT, entry), join(folder, entry), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const change of CHANGES[name]) apply(folder, change);
  return { name, folder };
};

const apply = (folder: string, { file, from, to }: Change): void => {
  const path = join(folder, file);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : null;
  if (from === null ? before !== null : !before?.includes(from)) {
    throw new Error(`made-up-changes.ts does not fit ${file} any more: ${from ?? 'it exists'}`);
  }
  writeFileSync(path, from === null ? to : (before as string).replace(from, () => to));
};
