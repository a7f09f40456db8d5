import pRetry, { AbortError } from 'p-retry';
import { Agent } from 'undici';
import type { ProviderRecord } from '../../domain/lookup/result.ts';
import { applyMapping, type Mapping } from './http-mapping.ts';
import type { Provider } from './provider.ts';
import { parseProviderRecord } from './provider-record.ts';

export interface HttpProviderOptions {
  /** URL with `{ip}` for the address. */
  readonly url: string;
  readonly token: string | undefined;
  /** Time limit of the whole attempt, including the retry after a lost connection. */
  readonly timeoutMs: number;
  readonly mapping: Mapping | null;
}

const MAX_RESPONSE_BYTES = 262_144;

/**
 * Creates a provider that queries an HTTP API: 200 with a record, 404 for an unknown address. Any other status, or an
 * invalid record, is a failure whose message never contains the URL or the token.
 */
export const createHttpProvider = (options: HttpProviderOptions): Provider & { close(): Promise<void> } => {
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: options.timeoutMs },
    maxResponseSize: MAX_RESPONSE_BYTES,
  });

  const ask = async (ip: string, signal: AbortSignal): Promise<ProviderRecord | null> => {
    const target = new URL(options.url.replaceAll('{ip}', encodeURIComponent(ip)));
    const { statusCode, body } = await agent
      .request({
        origin: target.origin,
        path: target.pathname + target.search,
        method: 'GET',
        headers: {
          accept: 'application/json',
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        },
        signal,
      })
      .catch((error: Error & { code?: string }) => {
        throw new Error(signal.aborted ? 'timed out' : `no answer: ${error.code ?? error.name}`);
      });
    if (statusCode !== 200) {
      await body.dump();
      if (statusCode === 404) return null;
      throw new AbortError(`answered ${statusCode}`);
    }
    const answer = await body.json().catch((error: Error) => {
      throw new AbortError(signal.aborted ? 'timed out' : `unreadable answer: ${error.name}`);
    });
    try {
      return parseProviderRecord(options.mapping ? applyMapping(options.mapping, answer) : answer);
    } catch (error) {
      throw new AbortError((error as Error).message);
    }
  };

  return {
    name: 'http',
    // This retry covers a kept-alive connection that the server has closed; other failures wait for the next attempt.
    lookup: (ip, stopping) => {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(options.timeoutMs)]);
      return withDeadline(
        pRetry(() => ask(ip, signal), { retries: 1, minTimeout: 100, factor: 1, signal }),
        signal,
      );
    },
    close: () => agent.destroy(),
  };
};

/** Needed because undici ignores its own signal while a request waits for a connection. */
const withDeadline = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = (): void => reject(new Error('timed out'));
    signal.addEventListener('abort', late, { once: true });
    work
      .then(resolve, (error: Error) => reject(signal.aborted ? new Error('timed out') : error))
      .finally(() => signal.removeEventListener('abort', late));
  });
