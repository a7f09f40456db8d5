import type { Dispatcher, Pool } from 'undici';
import { AttemptFailure } from './attempt-failure.ts';

export interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface ReceiverResponse {
  readonly status: number;
  readonly retryAfter: string | string[] | undefined;
}

/** A response body is discarded: it is read up to these limits only so that the connection can be reused. */
const DISCARDED_BYTES = 16_384;
const DISCARDING_MS = 1_000;
/** Limit of interim (1xx) responses; more are no legitimate HTTP. */
const MAX_INTERIM_RESPONSES = 8;
/** Limit of names and values of a head. */
const MAX_HEADER_BYTES = 16_384;

/**
 * Sends one POST and resolves with the response's status after the request has ended, at the latest after `limitMs`.
 * undici's own timeouts are not enough: a receiver could drip 103 responses, headers and bodies for ever.
 * @throws AttemptFailure, or undici's error if the connection broke
 */
export const exchange = (
  pool: Pool,
  { url, headers, body }: Posting,
  limitMs: number,
): Promise<ReceiverResponse> =>
  new Promise((resolve, reject) => {
    const deadline = performance.now() + limitMs;
    let controller: Dispatcher.DispatchController | null = null;
    let answer: ReceiverResponse | null = null;
    let late = false;
    let discarded = 0;
    let interim = 0;

    const settle = (error: Error): void => {
      clearTimeout(timer);
      if (answer) resolve(answer);
      else reject(late ? new AttemptFailure('timeout') : error);
    };
    const stop = (): void => {
      late = true;
      const failure = new AttemptFailure('timeout');
      if (controller) controller.abort(failure);
      else settle(failure);
    };
    let timer = setTimeout(stop, limitMs);

    pool.dispatch(
      { path: url.pathname + url.search, method: 'POST', headers, body },
      {
        onRequestStart: (started) => {
          controller = started;
          if (late) stop();
        },
        onResponseStart: (receiving, status, received) => {
          // A busy event loop runs the timer late; a response after the deadline still counts as a timeout.
          if (performance.now() >= deadline) return stop();
          if (status < 200) interim += 1;
          if (interim > MAX_INTERIM_RESPONSES || bytesOf(receiving.rawHeaders) >= MAX_HEADER_BYTES) {
            return receiving.abort(new AttemptFailure('connect'));
          }
          if (status < 200) return;
          answer = { status, retryAfter: received['retry-after'] };
          clearTimeout(timer);
          timer = setTimeout(stop, Math.min(DISCARDING_MS, deadline - performance.now()));
        },
        onResponseData: (receiving, chunk) => {
          discarded += chunk.length;
          if (discarded > DISCARDED_BYTES) receiving.abort(new Error('too long a body'));
        },
        onResponseEnd: () => settle(new Error('an end without a beginning')),
        onResponseError: (_controller, error) => settle(error),
      },
    );
  });

const bytesOf = (rawHeaders: Dispatcher.DispatchController['rawHeaders']): number =>
  Array.isArray(rawHeaders) ? rawHeaders.reduce((sum, { length }) => sum + length, 0) : 0;
