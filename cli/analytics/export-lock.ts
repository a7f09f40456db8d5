import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type pg from 'pg';

/** Another export writes the same target; the message is for the operator. */
export class TargetBusy extends Error {}

/** Holds the id of a folder of exports, which is the same on every machine that mounts the folder. */
const ID_FILE = '.doorplate-export';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Locks a target of exports for as long as the connection lives, so that a run which is killed leaves no lock behind.
 * @param folder that holds the target and exists
 * @param name of the target in the folder
 * @throws TargetBusy, pg's and the file system's errors
 */
export async function lockTarget(db: pg.ClientBase, folder: string, name: string): Promise<void> {
  // A server that is busy with a query notices the death of its client within this time. Some platforms lack the setting.
  await db.query(`set client_connection_check_interval = '500ms'`).catch(() => undefined);
  const { rows } = await db.query<{ locked: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
    [`doorplate export ${await idOf(folder)} ${name}`],
  );
  if (rows[0]?.locked === true) return;
  throw new TargetBusy(`export_running: another export writes ${join(folder, name)}: wait for its end`);
}

/** Makes the name under which a target is written until it is complete. */
export const partialName = (name: string): string => `${name}.${randomUUID()}.partial`;

/** Removes what killed runs have left in the folder: of the target `name`, or all. To be called with the lock held. */
export async function removePartials(folder: string, name: string | null): Promise<void> {
  for (const entry of await readdir(folder)) {
    if (isPartial(entry, name)) await rm(join(folder, entry), { recursive: true, force: true });
  }
}

function isPartial(entry: string, name: string | null): boolean {
  if (!entry.endsWith('.partial')) return false;
  return (
    name === null ||
    (entry.startsWith(`${name}.`) && UUID.test(entry.slice(name.length + 1, -'.partial'.length)))
  );
}

async function idOf(folder: string): Promise<string> {
  const file = join(folder, ID_FILE);
  try {
    return (await readId(file)) ?? (await makeId(file));
  } catch (error) {
    // Another user's, who cannot replace this user's files either.
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return resolve(folder);
    throw error;
  }
}

async function readId(file: string): Promise<string | null> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null || UUID.test(text)) return text;
  throw new Error(`${file} does not hold the id of this folder: delete it`);
}

/** The id is complete before it has its name, and the first of several runs makes it. */
async function makeId(file: string): Promise<string> {
  const partial = partialName(file);
  try {
    await writeFile(partial, randomUUID(), { flag: 'wx', mode: 0o644 });
    // Not every file system has links.
    await link(partial, file).catch(() => copyFile(partial, file, constants.COPYFILE_EXCL));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(partial, { force: true });
  }
  const id = await readId(file);
  if (id === null) throw new Error(`${file} was deleted meanwhile`);
  return id;
}
