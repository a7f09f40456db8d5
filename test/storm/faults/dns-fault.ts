import { setTimeout as pause } from 'node:timers/promises';
import type { Stack } from '../stack.ts';
import type { Fault } from './fault.ts';

const BROKEN_MS = 6_000;

/** Makes the host names of webhooks unknown for a while. */
export const dnsFault = ({ breakDns }: Stack): Fault => ({
  name: 'DNS of webhooks broken for 6 s',
  run: async () => {
    breakDns(true);
    await pause(BROKEN_MS);
    breakDns(false);
  },
});
