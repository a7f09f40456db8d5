import { applyMapping, type Mapping } from './field-mapping.ts';
import { createJsonApi } from './json-api.ts';
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

/**
 * Creates a provider that queries an HTTP API: 200 with a record, 404 for an unknown address. Any other status, or an
 * invalid record, is a failure whose message never contains the URL or the token.
 */
export const createHttpProvider = ({
  url,
  token,
  timeoutMs,
  mapping,
}: HttpProviderOptions): Provider & { close(): Promise<void> } => {
  const api = createJsonApi({
    url,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    timeoutMs,
    unknownStatus: 404,
  });
  return {
    name: 'http',
    lookup: async (ip, signal, { onRaw, again } = {}) => {
      const answer = await api.get(ip, signal, again);
      onRaw?.(answer ?? null);
      if (answer === undefined) return null;
      return parseProviderRecord(mapping ? applyMapping(mapping, answer) : answer);
    },
    close: api.close,
  };
};
