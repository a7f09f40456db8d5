import type { Dispatcher, Pool } from 'undici';
import { AttemptFailure } from './connections.ts';

export interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface ReceiverResponse {
  readonly status: number;
  readonly retryAfter: string | string[] | undefined;
}

/** Limit of interim (1xx) responses; more are no legitimate HTTP. */
const MAX_INTERIM_RESPONSES = 8;
/** A response body is discarded: it is read for this long, and up to 64 KiB (`connections.ts`), so that the connection can be reused. */
const DISCARDING_MS = 1_000;

/**
 * Sends one POST and resolves with the response's status after the request has ended, at the latest after `limitMs`.
 * undici's own timeouts are not enough: a receiver could drip 103 responses, headers and bodies for ever. Sizes are limited by `connections.ts`.
 * @throws AttemptFailure, or undici's error if the connection broke
 */
export function postAndReadStatus(
  pool: Pool,
  { url, headers, body }: Posting,
  limitMs: number,
): Promise<ReceiverResponse> {
  return new Promise((resolve, reject) => {
    const deadline = performance.now() + limitMs;
    let controller: Dispatcher.DispatchController | null = null;
    let response: ReceiverResponse | null = null;
    let isLate = false;
    let interimResponses = 0;
    let timer = setTimeout(stop, limitMs);

    function settle(error: Error): void {
      clearTimeout(timer);
      if (response) resolve(response);
      else reject(isLate ? new AttemptFailure('timeout') : error);
    }

    function stop(): void {
      isLate = true;
      const failure = new AttemptFailure('timeout');
      if (controller) controller.abort(failure);
      else settle(failure);
    }

    pool.dispatch(
      { path: url.pathname + url.search, method: 'POST', headers, body },
      {
        onRequestStart: (started) => {
          controller = started;
          if (isLate) stop();
        },
        onResponseStart: (receiving, status, received) => {
          // A busy event loop runs the timer late; a response after the deadline still counts as a timeout.
          if (performance.now() >= deadline) return stop();
          if (status < 200) {
            interimResponses += 1;
            if (interimResponses > MAX_INTERIM_RESPONSES) receiving.abort(new AttemptFailure('connect'));
            return;
          }
          response = { status, retryAfter: received['retry-after'] };
          clearTimeout(timer);
          timer = setTimeout(stop, Math.min(DISCARDING_MS, deadline - performance.now()));
        },
        onResponseData: () => undefined,
        onResponseEnd: () => settle(new Error('the response ended without a status')),
        onResponseError: (_controller, error) => settle(error),
      },
    );
  });
}
