import type { Time } from './time.ts';

export interface ClientOptions {
  /** Where the service is, as `https://doorplate.example`. */
  readonly baseUrl: string;
  /** From the partner account's owner. Keep it on your server. */
  readonly apiKey: string;
  /** Instead of the platform's own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Of one attempt, in milliseconds; 15,000 unless told. */
  readonly timeoutMs?: number | undefined;
  /** Attempts after the first one, where repeating is safe; 4 unless told. */
  readonly retries?: number | undefined;
  /** Of a call that polls, in milliseconds over all; 120,000 unless told. */
  readonly deadlineMs?: number | undefined;
  /** For tests: another clock. */
  readonly time?: Time | undefined;
}

/** What a single call may do otherwise than its client. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly retries?: number | undefined;
}

/** The same for a call that polls. */
export interface PollOptions extends CallOptions {
  readonly deadlineMs?: number | undefined;
}

/** A call's own limits, once its options and its client's are taken together. */
export interface Limits {
  readonly timeoutMs: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
  /** By the client's clock; null: there is none. */
  readonly deadlineAt: number | null;
}

/** @throws TypeError where a client cannot be made of them */
export const checked = (options: ClientOptions): ClientOptions => {
  const url = URL.canParse(options.baseUrl) ? new URL(options.baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#@]/.test(options.baseUrl)) {
    throw new TypeError('baseUrl must be an http(s) URL without credentials, query and fragment');
  }
  // The key itself stays out of the message, and out of one of fetch's.
  if (!/^[\x21-\x7e]+$/.test(options.apiKey)) throw new TypeError('apiKey must be an API key');
  return { ...options, baseUrl: options.baseUrl.replace(/(?<!\/)\/+$/, '') };
};
