/** The nodes of an EventStoreDB, controlled by a command from the storm's options. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hostsOf } from './stack.ts';

export type NodeAction = 'start' | 'stop' | 'kill' | 'freeze' | 'thaw' | 'cut' | 'join';

export interface Cluster {
  /** Numbers of the nodes, in the order of the URL, from 1. */
  readonly nodes: readonly number[];
  /** Runs `COMMAND ACTION NODE`. @throws when it does not exit with 0 */
  control(action: NodeAction, node: number): Promise<void>;
  /** The node that leads; null: no node reports itself as leader. */
  leader(): Promise<number | null>;
}

const COMMAND_TIMEOUT_MS = 60_000;
const INFO_TIMEOUT_MS = 1_000;
const run = promisify(execFile);

export const createCluster = (url: string, command: string): Cluster => {
  const hosts = hostsOf(url);
  const leads = async ({
    host,
    port,
  }: {
    readonly host: string;
    readonly port: number;
  }): Promise<boolean> => {
    const signal = AbortSignal.timeout(INFO_TIMEOUT_MS);
    const answer = await fetch(`http://${host}:${port}/info`, { signal }).catch(() => null);
    const info = answer?.ok ? ((await answer.json()) as { readonly state: string }) : null;
    return info?.state === 'leader';
  };
  return {
    nodes: hosts.map((_, index) => index + 1),
    control: async (action, node) => {
      await run(command, [action, String(node)], { timeout: COMMAND_TIMEOUT_MS });
    },
    leader: async () => {
      const answers = await Promise.all(hosts.map(leads));
      const index = answers.indexOf(true);
      return index < 0 ? null : index + 1;
    },
  };
};
