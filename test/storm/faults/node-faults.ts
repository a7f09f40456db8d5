import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster, NodeAction } from '../cluster.ts';
import type { Crowd } from '../load/crowd.ts';
import type { Random } from '../random.ts';
import type { Fault } from './fault.ts';

const DOWN_MS = 5_000;
const FROZEN_MS = 15_000;
const CUT_OFF_MS = 15_000;
const MINORITY_DOWN_MS = 20_000;
const ALL_DOWN_MS = 60_000;
const ELECTION_LIMIT_MS = 60_000;
const POLL_MS = 100;

/** What undoes an action. */
const BACK: Partial<Record<NodeAction, NodeAction>> = { freeze: 'thaw', cut: 'join' };

/** Kills, stops, freezes and cuts off nodes of an EventStoreDB: its only one, or the leader and others of a cluster. */
export const nodeFaults = (cluster: Cluster, random: Random, crowd: Crowd): Fault[] => {
  const victims = async (count: number): Promise<number[]> => {
    const leader = await untilLed(cluster);
    return [leader, ...random.shuffle(cluster.nodes.filter((node) => node !== leader))].slice(0, count);
  };
  const down = async (nodes: readonly number[], action: NodeAction, milliseconds: number): Promise<void> => {
    await Promise.all(nodes.map((node) => cluster.control(action, node)));
    await pause(milliseconds);
    await Promise.all(nodes.map((node) => cluster.control(BACK[action] ?? 'start', node)));
    await untilLed(cluster);
  };
  const alone = cluster.nodes.length === 1;
  const which = alone ? 'the EventStoreDB node' : 'the EventStoreDB leader';
  const single: Fault[] = [
    { name: `kill -9 of ${which}, down 5 s`, run: async () => down(await victims(1), 'kill', DOWN_MS) },
    { name: `SIGTERM of ${which}, down 5 s`, run: async () => down(await victims(1), 'stop', DOWN_MS) },
    { name: `${which} frozen for 15 s`, run: async () => down(await victims(1), 'freeze', FROZEN_MS) },
  ];
  if (alone) return single;
  return [
    ...single,
    {
      name: 'the EventStoreDB leader cut off from the other nodes for 15 s',
      run: async () => down(await victims(1), 'cut', CUT_OFF_MS),
    },
    {
      name: 'two of three EventStoreDB nodes down 20 s',
      run: async () => down(await victims(2), 'kill', MINORITY_DOWN_MS),
    },
    {
      name: 'all EventStoreDB nodes down 60 s, then 600 clients retry',
      run: async () => {
        crowd.start();
        await down(cluster.nodes, 'kill', ALL_DOWN_MS);
      },
      afterwards: crowd.served,
    },
  ];
};

/** Waits until one node leads: a fault finds a leader, and ends with one. @throws when none does within the limit */
const untilLed = async (cluster: Cluster): Promise<number> => {
  const end = performance.now() + ELECTION_LIMIT_MS;
  for (;;) {
    const leader = await cluster.leader();
    if (leader !== null) return leader;
    if (performance.now() > end) throw new Error(`EventStoreDB has no leader after ${ELECTION_LIMIT_MS} ms`);
    await pause(POLL_MS);
  }
};
