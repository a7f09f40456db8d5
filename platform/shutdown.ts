import type { Logger } from './log.ts';
import { endsWithin } from './pause.ts';

/** Ends one part of the process; may be slow, must not need a part that was registered after it. */
export type Closer = () => Promise<void> | void;

export interface Shutdown {
  /** Registers a part that has just been started. The last one registered is ended first, within its own limit. */
  register(name: string, close: Closer, limitMs?: number): void;
  /** Ends everything, as a first SIGTERM does. */
  begin(cause: string): void;
}

export interface ShutdownOptions {
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Where signals come from. Default: this process. */
  readonly signals?: Pick<NodeJS.Process, 'on'>;
  /** Ends the process. Default: `process.exit`. */
  readonly exit?: (code: 0 | 1) => void;
  /** For all parts together. Default: ten seconds. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;
/** Of one part: the parts after it are ended too. */
const PART_MS = 6_000;

/**
 * Listens for SIGTERM and SIGINT. The first ends the registered parts one after the other, the last one first, and
 * then the process with 0; with 1 where a part failed, the time ran out, or a second signal came.
 */
export function createShutdown(options: ShutdownOptions): Shutdown {
  const { log, signals = process, exit = process.exit, limitMs = LIMIT_MS } = options;
  const parts: Part[] = [];
  let begun = false;
  const begin = (cause: string) => {
    if (begun) return give(`${cause} during the shutdown`);
    begun = true;
    log.info({ cause }, 'shutting down');
    const limit = setTimeout(() => give(`the shutdown took over ${limitMs / 1000} s`), limitMs);
    void closeAll(parts, log).then((clean) => {
      clearTimeout(limit);
      log.info('shut down');
      exit(clean ? 0 : 1);
    });
  };
  const give = (cause: string) => {
    log.error(`${cause}: ending at once, with "${parts.at(-1)?.name ?? 'nothing'}" not ended`);
    exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) signals.on(signal, () => begin(signal));
  return {
    register: (name, close, partMs = PART_MS) => void parts.push({ name, close, limitMs: partMs }),
    begin,
  };
}

interface Part {
  readonly name: string;
  readonly close: Closer;
  readonly limitMs: number;
}

/** A part stays in the list until it has ended, so that a hanging one can be named. */
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
