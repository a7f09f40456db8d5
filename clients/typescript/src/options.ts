import type { Time } from './time.ts';

export interface ClientOptions {
  /** The service's URL, as `https://doorplate.example`. */
  readonly baseUrl: string;
  /** From the partner account's owner. Keep it on your server. */
  readonly apiKey: string;
  /** Replaces the platform's own. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Limit of one attempt, in milliseconds. Default: 15,000. */
  readonly timeoutMs?: number | undefined;
  /** Attempts after the first one, when repeating is safe. Default: 4. */
  readonly retries?: number | undefined;
  /** Limit of a call that polls, in milliseconds over all. Default: 120,000. */
  readonly deadlineMs?: number | undefined;
  /** For tests: another clock. */
  readonly time?: Time | undefined;
}

/** A single call's options that override its client's. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly retries?: number | undefined;
}

/** The same for a call that polls. */
export interface PollOptions extends CallOptions {
  readonly deadlineMs?: number | undefined;
}

/** A call's limits, from its own and its client's options. */
export interface Limits {
  readonly timeoutMs: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
  /** By the client's clock; null: there is none. */
  readonly deadlineAt: number | null;
}

/** @throws TypeError for invalid options */
export const checked = (options: ClientOptions): ClientOptions => {
  const url = URL.canParse(options.baseUrl) ? new URL(options.baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#@]/.test(options.baseUrl)) {
    throw new TypeError('baseUrl must be an http(s) URL without credentials, query and fragment');
  }
  // Neither this message nor one of fetch may contain the key.
  if (!/^[\x21-\x7e]+$/.test(options.apiKey)) throw new TypeError('apiKey must be an API key');
  return { ...options, baseUrl: options.baseUrl.replace(/(?<!\/)\/+$/, '') };
};
