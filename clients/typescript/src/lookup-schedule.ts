/** When which address is asked about next. */
import type { Time } from './time.ts';

export interface Task {
  readonly ip: string;
  readonly asks: 'submit' | 'poll';
  /** Attempts in a row whose outcome is unknown. */
  readonly failures: number;
}

interface Due {
  readonly task: Task;
  readonly at: number;
}

export const createSchedule = (time: Time) => {
  /** New addresses, in the order of their arrival. */
  const fresh: Task[] = [];
  let nextFresh = 0;
  /** Soonest first. */
  const due: Due[] = [];
  let pausedUntil = 0;
  let submissions = { code: '', pausedUntil: 0 };
  let total = 0;

  const insert = (one: Due): void => {
    let [low, high] = [0, due.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((due[middle] as Due).at <= one.at) low = middle + 1;
      else high = middle;
    }
    due.splice(low, 0, one);
  };

  const isOpen = (task: Task, now: number): boolean =>
    now >= pausedUntil && (task.asks === 'poll' || now >= submissions.pausedUntil);

  /** Removes and returns the first task that may go on now. Paused submissions do not hold up the polls behind them. */
  const take = (): Task | null => {
    const now = time.now();
    for (const [index, { task, at }] of due.entries()) {
      if (at > now) break;
      if (!isOpen(task, now)) continue;
      due.splice(index, 1);
      return task;
    }
    const first = fresh[nextFresh];
    if (!first || !isOpen(first, now)) return null;
    nextFresh += 1;
    return first;
  };

  const nextAt = (): number => {
    const opens = ({ asks }: Task): number =>
      Math.max(pausedUntil, asks === 'submit' ? submissions.pausedUntil : 0);
    const first = fresh[nextFresh];
    const times = due.slice(0, 100).map(({ task, at }) => Math.max(at, opens(task)));
    return Math.min(...times, first ? opens(first) : Infinity);
  };

  return {
    add: (ip: string): void => {
      total += 1;
      fresh.push({ ip, asks: 'submit', failures: 0 });
    },
    later: (task: Task, ms: number): void => insert({ task, at: time.now() + ms }),
    again: (task: Task): void => insert({ task, at: time.now() }),
    pauseAll: (ms: number): void => {
      pausedUntil = Math.max(pausedUntil, time.now() + ms);
    },
    pauseSubmissions: (code: string, ms: number): void => {
      submissions = { code, pausedUntil: Math.max(submissions.pausedUntil, time.now() + ms) };
    },
    take,
    isEmpty: (): boolean => due.length === 0 && nextFresh >= fresh.length,
    total: (): number => total,
    pending: (): number => due.filter(({ task }) => task.asks === 'poll').length,
    waiting: (): { code: string; ms: number } | null => {
      const ms = submissions.pausedUntil - time.now();
      return ms > 0 ? { code: submissions.code, ms } : null;
    },
    /** Waits until a task may go on, or one under way has ended. @throws the signal's reason */
    wait: async (running: ReadonlySet<Promise<void>>, signal: AbortSignal | undefined): Promise<void> => {
      const over = new AbortController();
      const stop = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
      const ms = Math.max(0, nextAt() - time.now());
      const slept = Number.isFinite(ms) ? [time.sleep(ms, stop)] : [];
      for (const sleep of slept) sleep.catch(() => undefined);
      try {
        await Promise.race([...running, ...slept]);
        signal?.throwIfAborted();
      } finally {
        over.abort();
      }
    },
  };
};
