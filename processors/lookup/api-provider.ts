import { parseAddress } from '../../domain/kernel/address.ts';
import { applyVendorMapping, valueAt } from './field-mapping.ts';
import { createJsonApi } from './json-api.ts';
import type { Preset, PresetRequest } from './presets.ts';
import type { Provider } from './provider.ts';
import { parseProviderRecord } from './provider-record.ts';

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
export const createApiProvider = ({
  name,
  preset: { request, mapping },
  url = request.url,
  token = '',
  timeoutMs,
}: ApiProviderOptions): Provider & { close(): Promise<void> } => {
  const api = createJsonApi({
    url: url.replaceAll('{token}', encodeURIComponent(token)),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([header, value]) => [header, value.replaceAll('{token}', token)]),
    ),
    timeoutMs,
    unknownStatus: request.unknown_status ?? null,
  });
  return {
    name,
    lookup: async (ip, signal, { onRaw, again } = {}) => {
      const answer = await api.get(ip, signal, again);
      onRaw?.(answer ?? null);
      if (answer === undefined) return null;
      if (request.answers_for !== undefined && !isSameAddress(ip, valueAt(answer, request.answers_for))) {
        throw new Error('wrong answer: it does not name the address that was asked for');
      }
      return parseProviderRecord(applyVendorMapping(mapping, answer));
    },
    close: api.close,
  };
};

/** Vendors spell IPv6 addresses in several ways. */
const isSameAddress = (ip: string, text: unknown): boolean =>
  typeof text === 'string' && parseAddress(text)?.toString() === parseAddress(ip)?.toString();
