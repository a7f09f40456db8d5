/** One request and its response. */
import { AttemptLimit, type Ending } from './attempt-limit.ts';
import { DoorplateError } from './errors.ts';
import { type ErrorBody, endpoints } from './generated.ts';
import type { OperationId } from './operations.ts';
import type { ClientOptions, Limits } from './options.ts';
import { createFetch } from './proxy.ts';
import type { Time } from './time.ts';

/** A success. */
export interface Answer<Body> {
  readonly body: Body;
  /** null: the response asks for no delay. */
  readonly retryAfterSeconds: number | null;
}

/** An operation's request, for any operation. */
export interface AnyRequest {
  readonly path?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined;
  readonly header?: Readonly<Record<string, string>> | undefined;
  readonly body?: object | undefined;
}

export type Attempt = (id: OperationId, request: AnyRequest, limits: Limits) => Promise<Answer<unknown>>;

/** Five times the longest answer of the service. */
const MAX_BODY_BYTES = 64 * 1_048_576;

/** A message's text for an unknown outcome. */
const UNKNOWN = 'its outcome is unknown';

export const createAttempt = (
  { baseUrl, apiKey, fetch = createFetch(baseUrl) }: ClientOptions,
  time: Time,
): Attempt => {
  return async (id, request, limits) => {
    const url = `${baseUrl}${filled(endpoints[id][1], request.path)}${queryOf(request.query)}`;
    const limit = new AttemptLimit(limits, time);
    try {
      limits.signal?.throwIfAborted();
      const response = await fetch(url, { ...fetchOptionsOf(id, request, apiKey), signal: limit.signal });
      return understood(id, response, await textOf(response));
    } catch (error) {
      if (error instanceof DoorplateError) throw error;
      throw unanswered(id, limit.reached() ?? { kind: 'network', text: 'no answer', cause: error });
    } finally {
      await limit.release();
    }
  };
};

/** @throws Error if the body is too long */
const textOf = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder();
  let [text, length] = ['', 0];
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_BODY_BYTES) throw new Error('the answer is too long');
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};

const fetchOptionsOf = (id: OperationId, { header, body }: AnyRequest, apiKey: string) => ({
  method: endpoints[id][0],
  headers: {
    ...header,
    accept: 'application/json',
    authorization: `Bearer ${apiKey}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  },
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  // A redirect could send the key to another host.
  redirect: 'manual' as const,
});

/** The failure of an attempt without a response. */
const unanswered = (id: OperationId, { kind, text, cause }: Ending): DoorplateError =>
  new DoorplateError(`${named(id)}: ${text}; ${UNKNOWN}`, { kind, outcome: 'unknown', operation: id }, cause);

/** The success in a response. @throws DoorplateError for anything else */
const understood = (id: OperationId, response: Response, text: string): Answer<unknown> => {
  const { status } = response;
  const body = parsed(text);
  const retryAfterSeconds = secondsOf(response.headers);
  if (response.ok && body !== null) return { body, retryAfterSeconds };

  const refusal = isErrorBody(body) ? body : null;
  // A refusal by the service or a proxy means that nothing was done. A 408 leaves that open.
  const outcome = status >= 400 && status < 500 && status !== 408 ? 'refused' : 'unknown';
  const said = refusal ? `${refusal.error.code}: ${refusal.error.message}` : 'not an answer of the API';
  const message = `${named(id)}: ${status} ${said}${outcome === 'unknown' ? `; ${UNKNOWN}` : ''}`;
  throw new DoorplateError(message, {
    kind: 'answer',
    outcome,
    operation: id,
    status,
    code: refusal?.error.code ?? null,
    requestId: refusal?.request_id ?? response.headers.get('x-request-id'),
    retryAfterSeconds,
    body: refusal,
  });
};

/** Without values: an address or an id must not reach a log. */
export const named = (id: OperationId): string => endpoints[id].join(' ');

/** @throws TypeError for an invalid id, which would change the URL's path */
const filled = (path: string, values: AnyRequest['path'] = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} must be an id`);
    return encodeURIComponent(value);
  });

const queryOf = (values: AnyRequest['query'] = {}): string => {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given))}`;
};

/** null: it is no JSON object. */
const parsed = (text: string): object | null => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
};

const isErrorBody = (body: object | null): body is ErrorBody =>
  typeof (body as Partial<ErrorBody> | null)?.error?.code === 'string';

/** A date, in one of the three forms of RFC 9110, 5.6.7, is relative to the response's own. null: no usable value. */
const secondsOf = (headers: Response['headers']): number | null => {
  const value = (headers.get('retry-after') ?? '').trim();
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const ms = dateOf(value) - (dateOf(headers.get('date') ?? '') || Date.now());
  return Number.isNaN(ms) ? null : Math.max(0, Math.ceil(ms / 1_000));
};

/** `Sun, 06 Nov 1994 08:49:37 GMT`, and the obsolete `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. */
const HTTP_DATE =
  /^[A-Z][a-z]{2}(?:,|[a-z]*day,)? (?:\d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} [\d:]{8} GMT|[A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/;

const dateOf = (text: string): number =>
  HTTP_DATE.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : Number.NaN;
