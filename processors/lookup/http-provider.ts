import pRetry, { AbortError } from 'p-retry';
import { Agent } from 'undici';
import type { ProviderRecord } from '../../domain/lookup/result.ts';
import { applyMapping, type Mapping } from './http-mapping.ts';
import type { Provider } from './provider.ts';
import { parseProviderRecord } from './provider-record.ts';

export interface HttpProviderOptions {
  /** With `{ip}` where the address goes. */
  readonly url: string;
  readonly token: string | undefined;
  /** For the whole attempt, a retry of a lost connection included. */
  readonly timeoutMs: number;
  readonly mapping: Mapping | null;
}

const LARGEST_ANSWER = 262_144;

/**
 * A provider behind HTTP: 200 with a record, 404 for an address that it does not know. Anything else is a
 * failure, and so is an answer of the wrong shape; the message never holds the URL or the token.
 */
export const createHttpProvider = (options: HttpProviderOptions): Provider & { close(): Promise<void> } => {
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: options.timeoutMs },
    maxResponseSize: LARGEST_ANSWER,
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
    // A retry here is for a kept-alive connection that the other side has closed; all else waits for the next attempt.
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

/** undici's own signal does not fire while a request waits for a connection. */
const withDeadline = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = (): void => reject(new Error('timed out'));
    signal.addEventListener('abort', late, { once: true });
    work
      .then(resolve, (error: Error) => reject(signal.aborted ? new Error('timed out') : error))
      .finally(() => signal.removeEventListener('abort', late));
  });
