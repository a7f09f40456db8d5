/** Maximum wait for more counts. */
const GATHER_MS = 2;

interface Waiting {
  /** Returns the number of counts that wait for an append. */
  answers(): number;
}

/** A short wait for more counts, so that they share an append. One caller waits at a time. */
export class Gathering {
  #wanted = Number.POSITIVE_INFINITY;
  #end: (() => void) | null = null;

  /** Waits until `answers` counts are waiting, or `GATHER_MS` is over. */
  async wait(waiting: Waiting, answers: number): Promise<void> {
    if (waiting.answers() >= answers) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      this.#wanted = answers;
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#end = null;
  }

  /** Ends the wait if enough counts are waiting. */
  note(waiting: Waiting): void {
    if (this.#end !== null && waiting.answers() >= this.#wanted) this.#end();
  }
}
