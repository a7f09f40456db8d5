import { setTimeout as pause } from 'node:timers/promises';
import type { StormProcess } from './processes.ts';

const POLL_MS = 100;

/** Waits until all processes report at once that they are ready. @returns when; null: not within the limit */
export const waitUntilReady = async (
  processes: readonly StormProcess[],
  limitMs: number,
): Promise<number | null> => {
  const end = performance.now() + limitMs;
  while (performance.now() < end) {
    const ready = await Promise.all(processes.map((one) => one.isReady()));
    if (ready.every(Boolean)) return performance.now();
    await pause(POLL_MS);
  }
  return null;
};

/** The reasons of the processes that are not ready. */
export const describeUnready = async (processes: readonly StormProcess[]): Promise<string> => {
  const texts = await Promise.all(
    processes.map(async (one) => {
      const text = await one.readiness().catch(String);
      return text.startsWith('200 ') ? null : `${one.name}: ${text.trim()}\n${one.lastLogLines()}`;
    }),
  );
  return texts.filter((text) => text !== null).join('\n');
};
