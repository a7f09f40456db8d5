/**
 * A separate process that survives a killed test run for a moment: when its standard input ends, it ends what the run
 * has left. Lines: `{"process": {pid, started}}` or `{"folder": DATA_DIR}`.
 */
import { createInterface } from 'node:readline';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { isAlive, type ProcessIdentity } from '../../platform/embedded/processes.ts';

export interface Charge {
  readonly process?: ProcessIdentity;
  readonly folder?: string;
}

const charges: Charge[] = [];
for await (const line of createInterface({ input: process.stdin })) charges.push(JSON.parse(line));
for (const { process: child } of charges) if (child && isAlive(child)) process.kill(child.pid, 'SIGKILL');
for (const { folder } of charges) if (folder) await removeDataFolder(folder);
