import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { reapProcess } from '../../test/support/reaped.ts';

/** A process of the benchmark: prints lines of JSON, ends when its input ends. */
export interface Child {
  readonly pid: number;
  /** Its next line. @throws when it ends first, or after `withinMs` */
  next<T>(withinMs: number): Promise<T>;
  say(message: object): void;
  /** Ends it by its input, or by force after a while. */
  end(): Promise<void>;
}

const END_MS = 15_000;

/** Starts one of the scripts `bench/*.ts` with one argument of JSON. */
export const startChild = (script: string, argument: object): Child => {
  const file = fileURLToPath(new URL(`../${script}`, import.meta.url));
  const child = spawn(process.execPath, [file, JSON.stringify(argument)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${script} could not be started`);
  reapProcess(pid);
  child.stdin.on('error', () => {});
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid,
    next: async <T>(withinMs: number): Promise<T> => {
      const line = await within(`a line of ${script}`, lines.next(), withinMs);
      if (line.done) throw new Error(`${script} ended before it was done`);
      return JSON.parse(line.value) as T;
    },
    say: (message) => void child.stdin.write(`${JSON.stringify(message)}\n`),
    end: async () => {
      child.stdin.end();
      await within(`the end of ${script}`, ended, END_MS).catch(() => child.kill('SIGKILL'));
      await ended;
    },
  };
};

/** The promise's value. @throws Error that names what is late */
const within = async <T>(what: string, promise: Promise<T>, ms: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms in vain for ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
