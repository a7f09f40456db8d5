import { setTimeout as pause } from 'node:timers/promises';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import type { Fault } from './fault.ts';

const REFUSED_MS = 3_000;
const SLOW_MS = 10_000;
const SILENT_MS = 10_000;
const DELAY_MS = 100;

/** Cuts a single EventStoreDB node off and slows it down. */
export const eventStoreFaults = (proxy: TcpProxy): Fault[] => [
  { name: 'connections to EventStoreDB cut', run: async () => proxy.cut() },
  {
    name: 'EventStoreDB unreachable for 3 s',
    run: async () => {
      await proxy.refuse();
      await pause(REFUSED_MS);
      await proxy.accept();
    },
  },
  {
    name: 'EventStoreDB 100 ms away for 10 s',
    run: async () => {
      proxy.delay(DELAY_MS);
      await pause(SLOW_MS);
      proxy.delay(0);
    },
  },
  {
    name: 'EventStoreDB silent for 10 s',
    run: async () => {
      proxy.freeze('everything');
      await pause(SILENT_MS);
      proxy.thaw();
    },
  },
];
