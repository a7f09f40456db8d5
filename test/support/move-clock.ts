/** Preloaded into a process (`--import`): moves its dates by the milliseconds that the file `TEST_CLOCK_FILE` holds. */
import { readFileSync } from 'node:fs';

const READ_EACH_MS = 50;

const read = (): number => Number(readFileSync(process.env.TEST_CLOCK_FILE ?? '', 'utf8'));
let movedMs = read();
setInterval(() => {
  movedMs = read();
}, READ_EACH_MS).unref();

const Unmoved = Date;
globalThis.Date = class extends Unmoved {
  constructor(...parts: [] | [number | string | Date]) {
    super(...((parts.length === 0 ? [Unmoved.now() + movedMs] : parts) as [number]));
  }
  static override now(): number {
    return Unmoved.now() + movedMs;
  }
} as DateConstructor;
