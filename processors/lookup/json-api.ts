import pRetry, { AbortError } from 'p-retry';
import { Agent, buildConnector } from 'undici';
import { readInParts } from '../../platform/socket-parts.ts';
import { Unavailable } from './provider.ts';

export interface JsonApiOptions {
  /** URL with `{ip}` for the address. It may hold a token. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the whole call, including the retry after a lost connection. */
  readonly timeoutMs: number;
  /** The status that says that the address is unknown; null: none. */
  readonly unknownStatus: number | null;
}

export interface JsonApi {
  /**
   * Returns the JSON of a 200; undefined if the address is unknown.
   * @param again awaited before the retry, which a vendor may bill; where it throws there is none
   * @throws Error whose message never contains the URL or a header
   */
  get(ip: string, stopping: AbortSignal, again?: () => Promise<void>): Promise<unknown>;
  close(): Promise<void>;
}

const MAX_RESPONSE_BYTES = 262_144;
/** Maximum of interim (1xx) responses; more are no legitimate HTTP, and endless ones would take the event loop. */
const MAX_INTERIM_RESPONSES = 8;
/** Maximum of bytes that undici parses at a time. */
const PART_BYTES = 1_024;

/** Aborts a request when too many interim responses have come. */
const limitInterim = (): { readonly signal: AbortSignal; onInfo(): void } => {
  const tooMany = new AbortController();
  let count = 0;
  const onInfo = (): void => {
    count += 1;
    if (count > MAX_INTERIM_RESPONSES) tooMany.abort();
  };
  return { signal: tooMany.signal, onInfo };
};

const createAgent = (timeoutMs: number): Agent => {
  const connector = buildConnector({ allowH2: false, timeout: timeoutMs });
  return new Agent({
    allowH2: false,
    connect: (options, done) =>
      connector(options, (error, socket) => {
        if (error) return done(error, null);
        readInParts(socket, { bytes: PART_BYTES });
        done(null, socket);
      }),
    maxResponseSize: MAX_RESPONSE_BYTES,
  });
};

/** Creates a client of a vendor's HTTP API. Any status other than 200 and `unknownStatus`, redirects included, fails. */
export const createJsonApi = ({ url, headers, timeoutMs, unknownStatus }: JsonApiOptions): JsonApi => {
  const agent = createAgent(timeoutMs);

  const ask = async (ip: string, signal: AbortSignal): Promise<unknown> => {
    const target = new URL(url.replaceAll('{ip}', encodeURIComponent(ip)));
    const interim = limitInterim();
    const { statusCode, body } = await agent
      .request({
        origin: target.origin,
        path: target.pathname + target.search,
        method: 'GET',
        headers: { accept: 'application/json', ...headers },
        signal: AbortSignal.any([signal, interim.signal]),
        onInfo: interim.onInfo,
      })
      .catch((error: Error & { code?: string }) => {
        if (interim.signal.aborted) throw new AbortError(new Unavailable('too many interim answers'));
        throw new Unavailable(signal.aborted ? 'timed out' : `no answer: ${error.code ?? error.name}`);
      });
    if (statusCode !== 200) {
      await body.dump();
      if (statusCode === unknownStatus) return undefined;
      const message = `answered ${statusCode}`;
      throw new AbortError(isOfAddress(statusCode) ? new Error(message) : new Unavailable(message));
    }
    return body.json().catch((error: Error) => {
      throw new AbortError(
        new Unavailable(signal.aborted ? 'timed out' : `unreadable answer: ${error.name}`),
      );
    });
  };

  return {
    // This retry covers a kept-alive connection that the server has closed; other failures wait for the next attempt.
    get: (ip, stopping, again) => {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
      let lost: unknown;
      const attempt = async (number: number): Promise<unknown> => {
        try {
          if (number > 1) await again?.();
        } catch {
          throw lost;
        }
        return ask(ip, signal).catch((error: unknown) => {
          lost = error;
          throw error;
        });
      };
      return withDeadline(pRetry(attempt, { retries: 1, minTimeout: 100, factor: 1, signal }), signal);
    },
    close: () => agent.destroy(),
  };
};

/** Whether a status is about the address that was asked for, not about the caller, its quota or the server. */
const isOfAddress = (status: number): boolean => status >= 400 && status < 500 && !OF_EVERY_CALL.has(status);

/** No or a wrong token, no credit, no permission, too many calls. */
const OF_EVERY_CALL: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 429]);

/** Needed because undici ignores its own signal while a request waits for a connection. */
const withDeadline = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = (): void => reject(new Unavailable('timed out'));
    signal.addEventListener('abort', late, { once: true });
    work
      .then(resolve, (error: Error) => reject(signal.aborted ? new Unavailable('timed out') : error))
      .finally(() => signal.removeEventListener('abort', late));
  });
