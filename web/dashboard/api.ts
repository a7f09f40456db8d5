/**
 * The partners' API for the dashboard: the same routes, limits and refusals, called in the name of a user, so that
 * there is one way to read and change a partner's data.
 */

import type { Role } from '../../domain/partners/events.ts';
import type {
  ApiRequest,
  Caller,
  KeyRequest,
  KeyRoute,
  PartnerRequest,
  PartnerRoute,
  Reply,
  Route,
  RouteTable,
} from '../../http/contract/route.ts';
import { type ErrorCode, refusal } from '../../http/errors/error-catalog.ts';
import type { Inadmissible } from '../../http/server/admission.ts';
import type { Notice } from '../../operations/condition.ts';
import type { LoggedInUser } from '../../processors/partners/logins.ts';
import type { CallingKeyDeps } from '../../queries/partners/partners.ts';
import type { SearchDeps } from '../../read-api/sessions/sessions.ts';
import type { TrackerBody } from '../../read-api/trackers/schemas.ts';
import type { ReadTrackerDays } from '../../read-api/usage/partner-usage.ts';
import type { Scope } from './scope.ts';
import type { Times } from './times.ts';

export type { LoggedInUser, Role };

/** Each role may do what those before it may (docs/dashboard.md, Roles). */
export const ROLES: readonly Role[] = ['read-only', 'member', 'owner'];

/** Whether the user has this role or one that may do more. */
export const hasRole = ({ role }: Pick<LoggedInUser, 'role'>, needed: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Whether the user may reveal, retry and change, so that the page offers it. The call itself is checked apart. */
export const mayChange = ({ user }: Pick<PageContext, 'user'>): boolean => hasRole(user, 'member');

/** Whether the user may change the team and the keys, so that the page offers it. The call itself is checked apart. */
export const isOwner = ({ user }: Pick<PageContext, 'user'>): boolean => hasRole(user, 'owner');

export interface ErrorAnswer {
  readonly ok: false;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Seconds until a repeat may succeed, if known. */
  readonly retryAfter?: number;
}

/** A refusal in the words of a page. `retryAfter`: seconds until a repeat may succeed. */
export const errorAnswer = (
  status: number,
  code: string,
  message: string,
  retryAfter?: number,
): ErrorAnswer => ({
  ...{ ok: false, status, code, message },
  ...(retryAfter === undefined ? {} : { retryAfter }),
});

export type ApiAnswer<T> = { readonly ok: true; readonly status: number; readonly body: T } | ErrorAnswer;

export interface CallOptions {
  /** Default: those of the page's own path. */
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
  readonly admit: (caller: Caller, route: Route) => Inadmissible | null | Promise<Inadmissible | null>;
}

/** The API for one request of a page: in the name of its user, or as one of the partner's keys would call it. */
export function createApi({ routes, admit }: ApiDeps) {
  const table = new Map<string, PartnerRoute | KeyRoute>();
  for (const route of routes) {
    if (route.access !== 'public') table.set(`${route.method} ${route.path}`, route);
  }
  const callAs =
    (page: ApiRequest, caller: Caller): Api =>
    async (method, path, options = {}) => {
      const route = table.get(`${method} ${path}`);
      if (route === undefined || (route.access === 'key' && caller.kind !== 'key')) {
        throw new TypeError(`the API has no ${method} ${path} for a ${caller.kind}`);
      }
      const request = requestOf(page, caller, options) as KeyRequest;
      const refused = await admit(caller, route);
      const answer =
        refused === null
          ? await route.handle(request)
          : refusal(page, refused.code, { retryAfter: refused.retryAfter });
      // What counts an answer to a key before it is sent counts it here too.
      const counted = caller.kind === 'key' ? await route.beforeSend?.(request, answer) : undefined;
      return toApiAnswer(counted ?? answer);
    };
  return {
    callAs,
    callAsUser: (page: ApiRequest, user: LoggedInUser): Api => {
      const { user_id, partner_id, is_suspended } = user;
      const call = callAs(page, { kind: 'user', user_id, partner_id, is_suspended });
      const mayCall = hasRole(user, 'member');
      const refused = is_suspended ? SUSPENDED : READ_ONLY;
      // A page's own need is checked before; this holds for a page that calls more than it says.
      return async (method, ...rest) => (method === 'GET' || mayCall ? call(method, ...rest) : refused);
    },
  };
}

const READ_ONLY = errorAnswer(
  403,
  'role_required',
  'Your role is read-only, so nothing was changed. An owner of the team can give you another role.',
);

const SUSPENDED = errorAnswer(
  403,
  'partner_suspended',
  'This account is suspended, so nothing was changed. Ask the operator of this service.',
);

const requestOf = (
  { id, receivedAt, startedAt, peer, params: own }: ApiRequest,
  caller: Caller,
  { params, query = {}, body, idempotencyKey }: CallOptions,
): PartnerRequest => ({
  id,
  receivedAt,
  startedAt,
  peer,
  caller,
  params: params ?? own,
  query: queryOf(query),
  body,
  header: (name) => (name === 'idempotency-key' ? idempotencyKey : undefined),
});

function queryOf(query: Readonly<Record<string, string | undefined>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') given.set(name, value);
  }
  return given.toString();
}

function toApiAnswer<T>({ status, body, headers = {} }: Reply): ApiAnswer<T> {
  const parsed = body === null ? null : JSON.parse(body.toString());
  if (status < 400) return { ok: true, status, body: parsed as T };
  const wait = headers['retry-after'];
  return { ok: false, status, ...parsed.error, ...(wait === undefined ? {} : { retryAfter: Number(wait) }) };
}

/** What the API answers to a refusal, for a command that it has no route for. */
export const refusedWith = (request: ApiRequest, code: ErrorCode): ErrorAnswer => ({
  ...(toApiAnswer(refusal(request, code)) as ErrorAnswer),
});

/** A request of a page by a logged-in user, with how instants are written for that user. */
export interface PageContext extends Times {
  readonly request: ApiRequest;
  readonly user: LoggedInUser;
  /** The login's token in the browser's cookie. */
  readonly token: string;
  /** The CSRF token of every form that changes something. */
  readonly csrf: string;
  readonly query: URLSearchParams;
  readonly scope: Scope;
  /** Empty for a GET. */
  readonly form: URLSearchParams;
  readonly api: Api;
  /** The API as one of the partner's keys calls it. */
  readonly apiAs: (key: Extract<Caller, { readonly kind: 'key' }>) => Api;
  /** URL of this service, as its callers see it. */
  readonly publicUrl: string;
  readonly reads: PageReads;
}

/** What a unit costs: in millionths of the currency's unit, so that sums are integers (`UNIT_PRICE`). */
export interface UnitPrice {
  readonly millionths: number;
  readonly currency: string;
}

/** What the readers of the read models take. */
export interface PageReads extends SearchDeps, CallingKeyDeps {
  /** Returns a wait for what these read models lack of the store; it resolves to false after a time limit. */
  readonly waitForHead: (names: readonly string[]) => () => Promise<boolean>;
  readonly trackerDays: ReadTrackerDays;
  /** What a partner should look at. `now` in milliseconds. */
  readonly notices: (partnerId: string, now: number) => Promise<readonly Notice[]>;
  /** The id of the delivery of an event to an endpoint. */
  readonly deliveryId: (webhookId: string, eventId: string) => string;
  /** Milliseconds between two probes of an endpoint that is held back. */
  readonly probeMs: number;
  /** What a unit costs today; null: the operator names no price. */
  readonly price: UnitPrice | null;
}

/** The context of a command that a page gives, in the name of its user. */
export const commandOf = ({ request, user }: PageContext) => ({
  correlationId: request.id,
  causationId: request.id,
  at: request.receivedAt,
  partnerId: user.partner_id,
  userId: user.user_id,
});

/** A search as it may reach the database: trimmed, without NUL or lone surrogates, which it does not take. */
export const plainText = (given: string | null): string =>
  (given ?? '').replaceAll('\0', '').toWellFormed().trim().slice(0, 1_000);

/** The trimmed text of a form's field; '' when it is missing. */
export const textOf = (page: PageContext, name: string): string => page.form.get(name)?.trim() ?? '';

/** Lists the partner's trackers; `failed`: why they cannot be listed. */
export async function listTrackers({ api }: PageContext) {
  const listed = await api<{ readonly trackers: readonly TrackerBody[] }>('GET', '/v1/trackers');
  return listed.ok ? { trackers: listed.body.trackers, failed: null } : { trackers: [], failed: listed };
}

/** A refusal for a page; null: the call succeeded. */
export type Refused = ErrorAnswer | null;
