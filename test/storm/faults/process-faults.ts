import { setTimeout as pause } from 'node:timers/promises';
import type { Role, StormProcess } from '../processes.ts';
import type { Random } from '../random.ts';
import type { Stack } from '../stack.ts';
import type { Violations } from '../violations.ts';
import type { Fault } from './fault.ts';

const DOWN_MS = 2_000;
const FROZEN_MS = 15_000;

/** Kills, freezes and restarts one process of each role. */
export const processFaults = (stack: Stack, random: Random, violations: Violations): Fault[] =>
  (['api', 'workers'] as const).flatMap((role) => ofRole(role, stack[role], random, violations));

const ofRole = (
  role: Role,
  processes: readonly StormProcess[],
  random: Random,
  violations: Violations,
): Fault[] => [
  {
    name: `kill -9 of one ${role} process`,
    run: async () => {
      const victim = random.pick(processes);
      await victim.kill();
      await pause(DOWN_MS);
      victim.start();
    },
  },
  {
    name: `${role} process frozen for 15 s`,
    run: async () => {
      const victim = random.pick(processes);
      victim.freeze();
      await pause(FROZEN_MS);
      victim.thaw();
    },
  },
  {
    name: `SIGTERM and restart of one ${role} process`,
    run: async () => {
      const victim = random.pick(processes);
      const code = await victim.terminate();
      if (code !== 0) {
        const log = victim.lastLogLines();
        violations.add('SIGTERM ends a process with 0', `${victim.name} ended with ${code}:\n${log}`);
      }
      victim.start();
    },
  },
];
