/** The releases of an upgrade storm: this tree, and that of the release before it, taken from the repository. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RELEASE } from '../../../platform/postgres/upgrade-path.ts';

export interface Release {
  readonly name: string;
  /** The folder of its program. */
  readonly folder: string;
}

export interface Releases {
  readonly now: Release;
  readonly before: Release;
  remove(): void;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const BEFORE = { name: '0.2.0', commit: 'd231de483caf' };

/** The clone lacks the commit of the release before this one, as a shallow one does. */
export class NoEarlierRelease extends Error {}

/** Puts the release before this one into a temporary folder. It runs with this tree's packages, which hold all of its own. @throws NoEarlierRelease */
export const makeReleases = (): Releases => {
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-release-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', ROOT, ...args], { maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    execFileSync('tar', ['-x', '-C', folder], { input: git('archive', BEFORE.commit) });
  } catch {
    remove();
    throw new NoEarlierRelease(`this clone has no commit ${BEFORE.commit}, the release ${BEFORE.name}`);
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return { now: { name: RELEASE, folder: ROOT }, before: { name: BEFORE.name, folder }, remove };
};
