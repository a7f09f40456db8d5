/** The parts that the operations of the OpenAPI document are put together from. */
import { z } from 'zod';
import type {
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { type ErrorCode, refusal, statusOf } from '../errors/error-catalog.ts';
import { requestId } from './schemas/common.ts';
import { companySignals } from './schemas/company-signals.ts';

const EXAMPLE_ID = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';

const header = <Schema extends z.ZodType>(
  id: string,
  schema: Schema,
  description: string,
  example?: string,
) => schema.meta({ description, ...(example !== undefined && { example }), header: { id } });

/** Response headers, by the name they are sent under. */
export const responseHeaders = {
  'X-Request-ID': header('X-Request-ID', z.uuid(), 'Made by the server for every response.'),
  'Retry-After': header('Retry-After', z.int().min(1), 'Seconds to wait.'),
  'Cache-Control': header('Cache-Control', z.string(), 'Whether and for how long the answer may be kept.'),
  Location: header('Location', z.string(), 'Relative URL to poll, same as `status_url`.'),
  'WWW-Authenticate': header('WWW-Authenticate', z.string(), '`Bearer realm="partner"`.'),
  RateLimit: header(
    'RateLimit',
    z.string(),
    'What is left of the rates that apply, as the IETF draft has it: `r` calls, and `t` seconds until there are more. ' +
      'Other processes and callers with the same key may use them first.',
    '"key";r=49;t=1',
  ),
  'RateLimit-Policy': header(
    'RateLimit-Policy',
    z.string(),
    'The rates that apply: `q` calls in any `w` seconds. `webhooks` and `changes`: all keys of the partner together.',
    '"key";q=50;w=1',
  ),
  Allow: header('Allow', z.string(), 'The methods that the path accepts.'),
} as const;

/** On answers to a call with a key. */
export const quotaHeaders = z.object({
  RateLimit: responseHeaders.RateLimit,
  'RateLimit-Policy': responseHeaders['RateLimit-Policy'],
});

export type HeaderName = keyof typeof responseHeaders;

/** `optional`: headers that only some answers of this status carry. */
export interface HeaderNames {
  readonly always?: readonly HeaderName[];
  readonly optional?: readonly HeaderName[];
}

/** X-Request-ID and the named headers. */
function headers({ always = [], optional = [] }: HeaderNames = {}) {
  const all: Record<string, z.ZodType> = { 'X-Request-ID': responseHeaders['X-Request-ID'] };
  for (const name of always) all[name] = responseHeaders[name];
  for (const name of optional) all[name] = responseHeaders[name].optional();
  return z.object(all);
}

/** A response that carries JSON of this schema. Examples go by a name that says what they show. */
export function jsonResponse<Schema extends z.ZodType>(
  description: string,
  schema: Schema,
  examples: Readonly<Record<string, z.output<Schema>>> = {},
  names: HeaderNames = {},
): ZodOpenApiResponseObject {
  const shown = Object.entries(examples).map(([name, value]) => [name, { value }]);
  return {
    description,
    headers: headers(names),
    content: { 'application/json': { schema, examples: Object.fromEntries(shown) } },
  };
}

/** The body of a POST that needs none: `{}` where there is one (contract, Requests 5). */
export const emptyBody: ZodOpenApiRequestBodyObject = {
  required: false,
  content: { 'application/json': { schema: z.strictObject({}) } },
};

/** A 204 or 304. */
export function noContent(description: string): ZodOpenApiResponseObject {
  return { description, headers: headers() };
}

const headersOfStatus: Readonly<Record<number, HeaderNames>> = {
  401: { always: ['WWW-Authenticate'] },
  405: { always: ['Allow'] },
  429: { always: ['Retry-After'] },
  503: { always: ['Retry-After'] },
};

/** One response for each status that these codes have, with an example of each code. */
export function refusalResponses(codes: readonly ErrorCode[]): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(codes, statusOf);
  const responses = [...byStatus].map(([status, ofStatus]) => [status, refusalResponse(status, ofStatus)]);
  return Object.fromEntries(responses);
}

function refusalResponse(status: number, codes: readonly ErrorCode[]): ZodOpenApiResponseObject {
  const examples = codes.map((code) => [code, JSON.parse(String(refusal({ id: EXAMPLE_ID }, code).body))]);
  const named = codes.map((code) => `\`${code}\``).join(', ');
  return jsonResponse(`Refused: ${named}.`, errorBody, Object.fromEntries(examples), headersOfStatus[status]);
}

/** The body of every refusal. */
export const errorBody = z
  .object({
    error: z.object({
      code: z.string().meta({ description: 'One of the codes of the error catalogs.' }),
      message: z.string().meta({ description: 'For people; its wording may change.' }),
    }),
    request_id: requestId,
    company_signals: companySignals.optional(),
  })
  .meta({ id: 'Error', description: 'Why a request was not carried out. Never a negative company match.' });

/** What any call with a key can be refused with. */
export const keyedCodes = [
  'unauthorized',
  'method_not_allowed',
  'rate_limit',
  'api_rate_limit',
  'api_busy',
  'backend_unavailable',
  'backend_timeout',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];

/** What any call with a JSON body can be refused with, besides. */
export const bodyCodes = [
  'invalid_json',
  'invalid_body',
  'body_too_large',
  'unsupported_media_type',
  'unsupported_encoding',
] as const satisfies readonly ErrorCode[];
