import { endsWithin } from '../clock/waiting.ts';
import type { Logger } from './log.ts';

/** Ends one part of the process. It may be slow, and must not need a part that was registered later. */
export type Closer = () => Promise<void> | void;

export interface Shutdown {
  /** Registers a started part. Parts are ended in reverse order, each within its own limit. */
  register(name: string, close: Closer, limitMs?: number): void;
  /**
   * Waits for the start. So does a signal, some seconds at most: it would end the parts under the start, and those to come not at
   * all. What fails after a signal is logged alone. @throws the start's error, after the parts that had started have ended:
   * the embedded PostgreSQL would outlive the process.
   */
  starting(start: Promise<unknown>): Promise<void>;
  begin(cause: string): void;
}

export interface ShutdownOptions {
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Source of signals. Default: this process. */
  readonly signals?: Pick<NodeJS.Process, 'on'>;
  /** Exits the process. Default: `process.exit`. */
  readonly exit?: (code: 0 | 1) => void;
  /** Limit of all parts together, milliseconds. Default: ten seconds. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;
/** Limit of one part, so that time is left for the others. */
const PART_MS = 6_000;
const START_MS = 4_000;

/**
 * Listens for SIGTERM and SIGINT. The first signal ends the registered parts in reverse order and exits with 0; with 1 if a
 * part failed, the time ran out, or a second signal came.
 */
export function createShutdown(options: ShutdownOptions): Shutdown {
  const { log, signals = process, exit = process.exit, limitMs = LIMIT_MS } = options;
  const parts: Part[] = [];
  let begun = false;
  let start: Promise<unknown> = Promise.resolve();
  const begin = (cause: string) => {
    if (begun) return exitNow(`${cause} during the shutdown`);
    begun = true;
    log.info({ cause }, 'shutting down');
    const limit = setTimeout(() => exitNow(`the shutdown took over ${limitMs / 1000} s`), limitMs);
    const started = endsWithin(Promise.allSettled([start]), START_MS);
    void started
      .then(() => closeAll(parts, log))
      .then((clean) => {
        clearTimeout(limit);
        log.info('shut down');
        exit(clean ? 0 : 1);
      });
  };
  const exitNow = (cause: string) => {
    log.error(`${cause}: ending at once, with "${parts.at(-1)?.name ?? 'nothing'}" not ended`);
    exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) signals.on(signal, () => begin(signal));
  return {
    register: (name, close, partMs = PART_MS) => void parts.push({ name, close, limitMs: partMs }),
    starting: async (work) => {
      start = work;
      await work.catch(async (error: unknown) => {
        if (begun) return log.error(error, 'the start was ended by the shutdown');
        begun = true;
        await endsWithin(closeAll(parts, log), PART_MS);
        throw error;
      });
    },
    begin,
  };
}

interface Part {
  readonly name: string;
  readonly close: Closer;
  readonly limitMs: number;
}

/** Keeps a part in the list until it has ended, so that a hanging one can be named. */
async function closeAll(parts: Part[], log: ShutdownOptions['log']): Promise<boolean> {
  let clean = true;
  for (let part = parts.at(-1); part !== undefined; part = parts.at(-1)) {
    try {
      if (!(await endsWithin(Promise.resolve(part.close()), part.limitMs))) {
        clean = false;
        log.error(
          `"${part.name}" did not end within ${part.limitMs / 1_000} s: the others are ended without it`,
        );
      }
    } catch (error) {
      clean = false;
      log.error(error, `"${part.name}" did not end cleanly`);
    }
    parts.splice(parts.indexOf(part), 1);
  }
  return clean;
}
