import pRetry, { AbortError } from 'p-retry';
import { Agent } from 'undici';
import { parseAddress } from '../../../domain/kernel/address.ts';
import {
  applyMapping,
  applyVendorMapping,
  type Mapping,
  type Preset,
  type PresetRequest,
  valueAt,
} from './mapping.ts';
import { type Provider, parseProviderRecord, Unavailable } from './provider.ts';

interface JsonApiOptions {
  /** URL with `{ip}` for the address. It may hold a token. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit of the whole call, including the retry after a lost connection. */
  readonly timeoutMs: number;
  /** The status that says that the address is unknown; null: none. */
  readonly unknownStatus: number | null;
}

const MAX_RESPONSE_BYTES = 262_144;

/** Creates a client of a vendor's HTTP API. Any status other than 200 and `unknownStatus`, redirects included, fails. */
function createJsonApi({ url, headers, timeoutMs, unknownStatus }: JsonApiOptions) {
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: timeoutMs },
    maxResponseSize: MAX_RESPONSE_BYTES,
  });

  const ask = async (ip: string, signal: AbortSignal): Promise<unknown> => {
    const target = new URL(url.replaceAll('{ip}', encodeURIComponent(ip)));
    const { statusCode, body } = await agent
      .request({
        origin: target.origin,
        path: target.pathname + target.search,
        method: 'GET',
        headers: { accept: 'application/json', ...headers },
        signal,
      })
      .catch((error: Error & { code?: string }) => {
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
    /**
     * Returns the JSON of a 200; undefined if the address is unknown.
     * @param again awaited before the retry, which a vendor may bill; where it throws there is none
     * @throws Error whose message never contains the URL or a header
     */
    // This retry covers a kept-alive connection that the server has closed; other failures wait for the next attempt.
    get: (ip: string, stopping: AbortSignal, again?: () => Promise<void>): Promise<unknown> => {
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
}

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

interface HttpProviderOptions {
  /** URL with `{ip}` for the address. */
  readonly url: string;
  readonly token: string | undefined;
  /** Time limit of the whole attempt, including the retry after a lost connection. */
  readonly timeoutMs: number;
  readonly mapping: Mapping | null;
}

/**
 * Creates a provider that queries an HTTP API: 200 with a record, 404 for an unknown address. Any other status, or an
 * invalid record, is a failure whose message never contains the URL or the token.
 */
export function createHttpProvider({ url, token, timeoutMs, mapping }: HttpProviderOptions) {
  const api = createJsonApi({
    url,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    timeoutMs,
    unknownStatus: 404,
  });
  return apiProvider('http', api, (answer) => (mapping ? applyMapping(mapping, answer) : answer));
}

/** `recordIn`: returns the record in an answer about an address, not validated. */
const apiProvider = (
  name: string,
  api: ReturnType<typeof createJsonApi>,
  recordIn: (answer: unknown, ip: string) => unknown,
): Provider & { close(): Promise<void> } => ({
  name,
  lookup: async (ip, signal, { onRaw, again } = {}) => {
    const answer = await api.get(ip, signal, again);
    onRaw?.(answer ?? null);
    return answer === undefined ? null : parseProviderRecord(recordIn(answer, ip));
  },
  close: api.close,
});

export interface ApiProviderOptions {
  readonly name: string;
  readonly preset: Preset & { readonly request: PresetRequest };
  /** Replaces the preset's URL. */
  readonly url: string | undefined;
  readonly token: string | undefined;
  readonly timeoutMs: number;
}

/** Whether a preset has a place for a token, which then is required. */
export const needsToken = ({ url, headers }: PresetRequest): boolean =>
  [url, ...Object.values(headers)].some((text) => text.includes('{token}'));

/** Creates a provider that queries a vendor's API as its preset describes it. Messages of failures hold no token. */
export function createApiProvider({
  name,
  preset: { request, mapping },
  url = request.url,
  token = '',
  timeoutMs,
}: ApiProviderOptions) {
  const api = createJsonApi({
    url: url.replaceAll('{token}', encodeURIComponent(token)),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([header, value]) => [header, value.replaceAll('{token}', token)]),
    ),
    timeoutMs,
    unknownStatus: request.unknown_status ?? null,
  });
  return apiProvider(name, api, (answer, ip) => {
    if (request.answers_for !== undefined && !isSameAddress(ip, valueAt(answer, request.answers_for))) {
      throw new Error('wrong answer: it does not name the address that was asked for');
    }
    return applyVendorMapping(mapping, answer);
  });
}

/** Vendors spell IPv6 addresses in several ways. */
const isSameAddress = (ip: string, text: unknown): boolean =>
  typeof text === 'string' && parseAddress(text)?.toString() === parseAddress(ip)?.toString();
