import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const INSTALL_MS = 180_000;

const { dependencies } = JSON.parse(readFileSync(`${FOLDER}package.json`, 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};

/** A row whose peer cannot be had here is skipped by name. */
export class NoPeer extends Error {}

/** Returns the pinned version of a peer, with its name. */
export const versionOf = (name: string): string => `${name} ${dependencies[name]}`;

/**
 * Installs the pinned peers into this folder, unless they are there: exactly what the lock file beside this says, without
 * install scripts.
 * @throws NoPeer with npm's reason, for example that the registry cannot be reached
 */
export const installPeers = async (): Promise<void> => {
  if (Object.entries(dependencies).every(([name, version]) => installedVersion(name) === version)) return;
  try {
    await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: FOLDER,
      timeout: INSTALL_MS,
    });
  } catch (error) {
    const said = String((error as { stderr?: string }).stderr || error).trim();
    throw new NoPeer(`npm could not install bench/peers: ${said.split('\n').slice(0, 2).join('; ')}`);
  }
};

const installedVersion = (name: string): string | null => {
  const file = `${FOLDER}node_modules/${name}/package.json`;
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
};
