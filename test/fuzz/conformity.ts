/** Whether an answer is one that the OpenAPI document promises. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface Operation {
  readonly responses: Readonly<
    Record<string, { content?: { 'application/json'?: { examples?: Readonly<Record<string, unknown>> } } }>
  >;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export interface Answered {
  readonly method: string;
  /** The request target as it was sent. */
  readonly target: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** RFC 9562: of a request version 4, of other things others. */
const REQUEST_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const SECONDS = /^[1-9]\d*$/;
/** Served and public, but no part of the interface that the document describes. */
const UNDOCUMENTED = /^\/(docs|openapi\.json)(\/|$)/;

const escaped = (text: string) => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'));

/** @returns a function that names what is wrong with an answer; null: nothing */
export const conformity = (document: object): ((answered: Answered) => string | null) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addFormat('date-time', /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
  ajv.addFormat('uuid', UUID);
  ajv.addSchema(document, 'document');
  const { paths } = document as Document;
  const statuses = catalogOf(document);
  const compiled = new Map<string, ValidateFunction>();
  const schemaAt = (pointer: string): ValidateFunction => {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` });
    compiled.set(pointer, validate);
    return validate;
  };
  const shapeProblem = (pointer: string, body: unknown): string | null => {
    const validate = schemaAt(pointer);
    return validate(body) ? null : `the body is not as promised: ${ajv.errorsText(validate.errors)}`;
  };

  const templates = Object.keys(paths).filter((path) => path.includes('{'));
  /** The document's spelling of a path; the path itself where it has none. */
  const template = (path: string, target: string): string => {
    if (paths[path]) return path;
    const segments = (target.split(/[?#]/)[0] ?? '').split('/').map(decoded);
    const fits = (of: readonly string[]) =>
      of.length === segments.length &&
      of.every((part, at) => (part.startsWith('{') ? Boolean(segments[at]) : part === segments[at]));
    return templates.find((name) => fits(name.split('/'))) ?? path;
  };

  const errorProblem = (
    answered: Answered,
    body: unknown,
    promised: readonly string[] | null,
  ): string | null => {
    const { code } = (body as { error?: { code?: string } }).error ?? {};
    if (code === undefined) return 'an error without a code';
    if (statuses.get(code) !== answered.status) return `${code} is not of status ${answered.status}`;
    if (promised && !promised.includes(code)) return `${code} is not promised here`;
    return shapeProblem('/components/schemas/Error', body);
  };

  return (answered) => {
    const { method, target, status, headers, text } = answered;
    const general = headerProblem(answered);
    if (general) return general;
    const path = pathOf(target);
    if (UNDOCUMENTED.test(path) && status < 400) return null;
    if (method === 'OPTIONS' && status === 204 && path === '/tracking/collect') return null;
    if (method === 'HEAD') return text === '' ? null : 'an answer to HEAD has a body';
    const isJson = String(headers['content-type']).startsWith('application/json');
    const body = isJson ? JSON.parse(text) : null;
    if (body?.request_id !== undefined && body.request_id !== headers['x-request-id']) {
      return 'request_id is not the X-Request-ID';
    }
    const known = template(path, target);
    const operation = paths[known]?.[method.toLowerCase()];
    if (!operation) {
      const expected = paths[known] || UNDOCUMENTED.test(path) ? [405, 404, 414] : [404];
      return expected.includes(status)
        ? errorProblem(answered, body, null)
        : `status ${status} for no such path`;
    }
    const response = operation.responses[status];
    if (!response) return `status ${status} is not promised`;
    const examples = response.content?.['application/json']?.examples ?? {};
    if (status >= 400) return errorProblem(answered, body, Object.keys(examples));
    if (response.content === undefined) return text === '' ? null : 'a body where none is promised';
    if (!isJson) return 'application/json' in response.content ? 'no JSON' : null;
    const at = `/paths/${escaped(known)}/${method.toLowerCase()}/responses/${status}`;
    return shapeProblem(`${at}/content/application~1json/schema`, body);
  };
};

/** The path as the router reads it: without the query, percent signs decoded. */
const pathOf = (target: string): string => {
  const path = target.split(/[?#]/)[0] ?? '';
  return decoded(path) ?? path;
};

/** null: the router does not take it. */
const decoded = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

const catalogOf = (document: object): Map<string, number> =>
  new Map(
    ['x-error-codes', 'x-tracking-error-codes', 'x-doorplate-error-codes']
      .flatMap((name) => (document as Record<string, { code: string; status: number }[]>)[name] ?? [])
      .map(({ code, status }) => [code, status]),
  );

const headerProblem = ({ status, headers, target }: Answered): string | null => {
  const has = (name: string, pattern: RegExp) => pattern.test(String(headers[name] ?? ''));
  if (status >= 500 && status !== 503) return `status ${status}`;
  if (!has('x-request-id', REQUEST_ID)) return 'no X-Request-ID';
  if ((status === 429 || status === 503) && !has('retry-after', SECONDS)) return 'no whole Retry-After';
  if (status === 401 && headers['www-authenticate'] !== 'Bearer realm="partner"') return 'no challenge';
  if (status === 405 && !has('allow', /^[A-Z]+(, [A-Z]+)*$/)) return 'no Allow';
  // A test of a webhook is looked for in the history of its endpoint.
  const polled = status === 202 && !target.startsWith('/v1/webhooks/');
  if (polled && (!has('location', /^\/v1\//) || !has('retry-after', SECONDS))) return 'nowhere to poll';
  const cacheable = headers['cache-control'] === 'private, max-age=60' && status === 200;
  const stored = target.startsWith('/v1/') && headers['cache-control'] !== 'no-store' && !cacheable;
  return stored ? `Cache-Control: ${headers['cache-control']}` : null;
};
