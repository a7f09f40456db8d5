/** Too much work is running or waiting; nothing was done. */
export class WorkRefused extends Error {}

export interface Gate {
  /** Runs the work as soon as a slot is free. @throws the gate's refusal if none is free in time or the queue is full */
  enter<T>(work: () => Promise<T>): Promise<T>;
  isIdle(): boolean;
  idle(): Promise<void>;
}

export interface GateOptions {
  readonly room: number;
  /** Maximum waiting work. Default: unlimited. */
  readonly waiting?: number;
  /** Maximum wait, milliseconds. Default: unlimited. */
  readonly patienceMs?: number;
  /** A slot stays taken for this many times as long as its work took, at most a second. Default: 0. */
  readonly rest?: number;
  /** Makes the error of rejected work from a one-line reason. Default: WorkRefused. */
  readonly refusal?: (why: string) => Error;
}

/** A process that was frozen during its work does not rest for as long. */
const MAX_REST_MS = 1_000;

/** Limits concurrency, with a bounded FIFO queue. p-queue and p-limit bound neither the queue nor the wait in it. */
export const createGate = ({
  room,
  waiting: mostWaiting = Number.POSITIVE_INFINITY,
  patienceMs,
  rest = 0,
  refusal = (why) => new WorkRefused(why),
}: GateOptions): Gate => {
  const waiting = new Set<() => void>();
  const watching = new Set<() => void>();
  let running = 0;

  const refused = (): Error => refusal(`${running} running and ${waiting.size} waiting`);

  const admission = (): Promise<void> =>
    new Promise((resolve, reject) => {
      if (waiting.size >= mostWaiting) return reject(refused());
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const giveUp = (): void => {
        waiting.delete(admit);
        reject(refused());
      };
      const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
      waiting.add(admit);
    });

  const leave = (): void => {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next(); // inherits the slot
      return;
    }
    running -= 1;
    if (running > 0) return;
    for (const resolve of watching) resolve();
    watching.clear();
  };

  return {
    enter: async (work) => {
      if (running < room) running += 1;
      else await admission();
      const begun = performance.now();
      try {
        return await work();
      } finally {
        const restMs = Math.min(rest * (performance.now() - begun), MAX_REST_MS);
        if (restMs > 0) setTimeout(leave, restMs).unref();
        else leave();
      }
    },
    isIdle: () => running === 0,
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => watching.add(resolve))),
  };
};

/** Gates by key, each kept for as long as work of its key runs or waits. */
export interface Gates {
  enter<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Limits concurrency by key. `options` are those of each key's gate. */
export const createGates = (options: GateOptions): Gates => {
  const gates = new Map<string, Gate>();
  return {
    enter: async (key, work) => {
      const gate = gates.get(key) ?? createGate(options);
      gates.set(key, gate);
      try {
        return await gate.enter(work);
      } finally {
        if (gate.isIdle()) gates.delete(key);
      }
    },
  };
};
