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

/** When which address is asked about next. */
export class LookupSchedule {
  readonly #time: Time;
  /** New addresses, in the order of their arrival. */
  readonly #fresh: Task[] = [];
  #nextFresh = 0;
  /** Soonest first. */
  readonly #due: Due[] = [];
  #pausedUntil = 0;
  #submissions = { code: '', pausedUntil: 0 };
  /** Ends a wait that has begun. */
  #wake = (): void => undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  add(ip: string): void {
    this.#fresh.push({ ip, asks: 'submit', failures: 0 });
    this.#wake();
  }

  later(task: Task, ms: number): void {
    insertInOrder(this.#due, { task, at: this.#time.now() + ms });
  }

  again(task: Task): void {
    this.later(task, 0);
  }

  pauseAll(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#time.now() + ms);
  }

  pauseSubmissions(code: string, ms: number): void {
    const pausedUntil = Math.max(this.#submissions.pausedUntil, this.#time.now() + ms);
    this.#submissions = { code, pausedUntil };
  }

  /** Removes and returns the first task that may go on now. Paused submissions do not hold up the polls behind them. */
  take(): Task | null {
    const now = this.#time.now();
    for (const [index, { task, at }] of this.#due.entries()) {
      if (at > now) break;
      if (now < this.#opensAt(task)) continue;
      this.#due.splice(index, 1);
      return task;
    }
    const first = this.#fresh[this.#nextFresh];
    if (!first || now < this.#opensAt(first)) return null;
    this.#nextFresh += 1;
    return first;
  }

  isEmpty(): boolean {
    return this.#due.length === 0 && this.#nextFresh >= this.#fresh.length;
  }

  total(): number {
    return this.#fresh.length;
  }

  pending(): number {
    return this.#due.filter(({ task }) => task.asks === 'poll').length;
  }

  waiting(): { code: string; ms: number } | null {
    const { code, pausedUntil } = this.#submissions;
    const ms = pausedUntil - this.#time.now();
    return ms > 0 ? { code, ms } : null;
  }

  /** Waits until a task may go on, one under way has ended, or one is added. @throws the signal's reason */
  async wait(running: ReadonlySet<Promise<void>>, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const over = new AbortController();
    const stop = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
    const ms = Math.max(0, this.#nextAt() - this.#time.now());
    const slept = Number.isFinite(ms) ? [this.#time.sleep(ms, stop)] : [];
    for (const sleep of slept) sleep.catch(() => undefined);
    try {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
        stop.addEventListener('abort', () => resolve(), { once: true });
      });
      await Promise.race([woken, ...running, ...slept]);
      signal?.throwIfAborted();
    } finally {
      over.abort();
    }
  }

  /** When the pauses that apply to a task are over. */
  #opensAt({ asks }: Task): number {
    return Math.max(this.#pausedUntil, asks === 'submit' ? this.#submissions.pausedUntil : 0);
  }

  #nextAt(): number {
    const first = this.#fresh[this.#nextFresh];
    const times = this.#due.slice(0, 100).map(({ task, at }) => Math.max(at, this.#opensAt(task)));
    return Math.min(...times, first ? this.#opensAt(first) : Infinity);
  }
}

/** Inserts behind those of the same time. */
const insertInOrder = (due: Due[], one: Due): void => {
  let [low, high] = [0, due.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((due[middle] as Due).at <= one.at) low = middle + 1;
    else high = middle;
  }
  due.splice(low, 0, one);
};
