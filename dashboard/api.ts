/**
 * The partners' API for the dashboard: the same routes, limits and refusals, called in the name of a user, so that
 * there is one way to read and change a partner's data.
 */
import type { Inadmissible } from '../http/admission.ts';
import { refusal } from '../http/error-catalog.ts';
import type { Answer, ApiRequest, CallingKey, Route, RouteTable } from '../http/route.ts';

export interface DashboardUser {
  readonly user_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly partner_name: string;
  /** An operator set the password: it must be changed first. */
  readonly is_first: boolean;
}

export interface ErrorAnswer {
  readonly ok: false;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Seconds until a repeat may succeed, if known. */
  readonly retryAfter?: number;
}

export type ApiAnswer<T> = { readonly ok: true; readonly status: number; readonly body: T } | ErrorAnswer;

export interface CallOptions {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
}

/** Calls a route by its method and its registered path, `/v1/trackers/:tracker_id` for example. */
export type Api = <T>(method: Route['method'], path: string, options?: CallOptions) => Promise<ApiAnswer<T>>;

export interface ApiDeps {
  /** The API's own. */
  readonly routes: RouteTable;
  /** Spends the rates that the call needs, as for a key. */
  readonly admit: (key: CallingKey, route: Route) => Inadmissible | null | Promise<Inadmissible | null>;
}

/** Enough for a person at a browser; a page makes a few calls. */
const CALLS_PER_SECOND = 50;

/** The API for one request of a page. */
export const createApi = ({ routes, admit }: ApiDeps) => {
  const table = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));
  return (page: ApiRequest, user: DashboardUser): Api => {
    const key: CallingKey = {
      key_id: `user ${user.user_id}`,
      partner_id: user.partner_id,
      name: user.name,
      requests_per_second: CALLS_PER_SECOND,
      new_enrichments_per_day: 0,
      pending_enrichments: 0,
      company_signals: false,
    };
    return async (method, path, options = {}) => {
      const route = table.get(`${method} ${path}`);
      if (route === undefined) throw new TypeError(`the API has no ${method} ${path}`);
      const refused = await admit(key, route);
      if (refused !== null) {
        return toApiAnswer(refusal(page, refused.code, { retryAfter: refused.retryAfter }));
      }
      return toApiAnswer(await route.handle(requestOf(page, key, user, options)));
    };
  };
};

const requestOf = (
  { id, receivedAt, startedAt, peer }: ApiRequest,
  key: CallingKey,
  { user_id }: DashboardUser,
  { params = {}, query = {}, body, idempotencyKey }: CallOptions,
): ApiRequest => ({
  id,
  receivedAt,
  startedAt,
  peer,
  key,
  userId: user_id,
  params,
  query: queryOf(query),
  body,
  header: (name) => (name === 'idempotency-key' ? idempotencyKey : undefined),
});

const queryOf = (query: Readonly<Record<string, string | undefined>>): string => {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') given.set(name, value);
  }
  return given.toString();
};

const toApiAnswer = <T>({ status, body, headers = {} }: Answer): ApiAnswer<T> => {
  const parsed = body === null ? null : JSON.parse(body.toString());
  if (status < 400) return { ok: true, status, body: parsed as T };
  const wait = headers['retry-after'];
  return { ok: false, status, ...parsed.error, ...(wait === undefined ? {} : { retryAfter: Number(wait) }) };
};
