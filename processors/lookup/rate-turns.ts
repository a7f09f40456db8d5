import { pause } from '../../platform/pause.ts';
import type { Verdict } from '../../platform/rate-limit.ts';
import { NotAsked } from './provider.ts';

interface Call {
  readonly until: number;
  readonly admit: () => void;
  readonly refuse: (why: string) => void;
}

const USED_UP = 'its rate is used up';

/**
 * The calls that wait for a provider's rate. Askers take turns, because one may have more calls waiting than the rate admits in
 * the time that a call may wait.
 */
export class RateTurns {
  readonly #takeOne: () => Verdict | Promise<Verdict>;
  readonly #maxWaitMs: number;
  readonly #waiting = new Map<string, Set<Call>>();
  #isServing = false;

  /** @param takeOne takes one call of the rate, over all processes */
  constructor(takeOne: () => Verdict | Promise<Verdict>, maxWaitMs: number) {
    this.#takeOne = takeOne;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Resolves when the rate admits the call, in the turn of the first of its askers to have one.
   * @throws NotAsked if that would take too long, or at an abort
   */
  wait(askers: readonly string[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const call: Call = {
        until: performance.now() + this.#maxWaitMs,
        admit: () => end(resolve),
        refuse: (why) => end(() => reject(new NotAsked(`not asked: ${why}`))),
      };
      const giveUp = (): void => call.refuse(USED_UP);
      const end = (settle: () => void): void => {
        for (const asker of askers) this.#leave(asker, call);
        signal.removeEventListener('abort', giveUp);
        settle();
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp);
      for (const asker of askers) {
        this.#waiting.set(asker, (this.#waiting.get(asker) ?? new Set()).add(call));
      }
      void this.#serve();
    });
  }

  #leave(asker: string, call: Call): void {
    const calls = this.#waiting.get(asker);
    if (calls?.delete(call) && calls.size === 0) this.#waiting.delete(asker);
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#waiting.size > 0) await this.#serveNext();
    } catch {
      // Without the store no call can be counted, so none is made.
      this.#refuse('its rate could not be counted', () => true);
    } finally {
      this.#isServing = false;
    }
  }

  async #serveNext(): Promise<void> {
    const verdict = await this.#takeOne();
    if (verdict === null) return this.#admitNext();
    const nextAt = performance.now() + verdict.retryMs;
    this.#refuse(USED_UP, ({ until }) => nextAt > until);
    if (this.#waiting.size > 0) await pause(verdict.retryMs);
  }

  /** Admits the first call of the asker whose turn it is, and puts the asker behind the others. */
  #admitNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [asker, calls] = next;
    this.#waiting.delete(asker);
    this.#waiting.set(asker, calls);
    const [call] = calls;
    call?.admit();
  }

  #refuse(why: string, isOver: (call: Call) => boolean): void {
    for (const call of [...this.#waiting.values()].flatMap((calls) => [...calls])) {
      if (isOver(call)) call.refuse(why);
    }
  }
}
