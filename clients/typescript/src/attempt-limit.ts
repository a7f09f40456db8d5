import type { FailureKind } from './errors.ts';
import type { Limits } from './options.ts';
import type { Time } from './time.ts';

/** Why an attempt has no response. */
export interface Ending {
  readonly kind: FailureKind;
  /** For a message. */
  readonly text: string;
  readonly cause: unknown;
}

/** Ends one attempt at its timeout, at its call's deadline or on the caller's signal. Release it after the attempt. */
export class AttemptLimit {
  readonly #limits: Limits;
  /** Milliseconds until the call's deadline. */
  readonly #left: number;
  readonly #stop = new AbortController();
  readonly #released = new AbortController();
  readonly #alarm: Promise<void>;
  #late = false;
  readonly #abort = (): void => this.#stop.abort(this.#limits.signal?.reason);

  constructor(limits: Limits, time: Time) {
    this.#limits = limits;
    this.#left = limits.deadlineAt === null ? Infinity : limits.deadlineAt - time.now();
    const ms = Math.max(0, Math.min(limits.timeoutMs, this.#left));
    this.#alarm = time.sleep(ms, this.#released.signal).then(
      () => this.#end(),
      () => undefined,
    );
    limits.signal?.addEventListener('abort', this.#abort, { once: true });
  }

  /** Aborted once a limit is reached. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Returns the limit that has ended the attempt; null: none. */
  reached(): Ending | null {
    const { signal, timeoutMs } = this.#limits;
    if (signal?.aborted) return { kind: 'aborted', text: 'aborted', cause: signal.reason };
    if (!this.#late) return null;
    return this.#left <= timeoutMs
      ? { kind: 'deadline', text: 'the deadline has passed', cause: undefined }
      : { kind: 'timeout', text: `no answer within ${timeoutMs} ms`, cause: undefined };
  }

  /** Ends the timer and no longer follows the caller's signal. */
  release(): Promise<void> {
    this.#limits.signal?.removeEventListener('abort', this.#abort);
    this.#released.abort();
    return this.#alarm;
  }

  #end(): void {
    this.#late = true;
    this.#stop.abort();
  }
}
