import type { ZodOpenApiOperationObject } from 'zod-openapi';

/** The API key of a call, as the read model has it: what limits and scopes need, no secret. */
export interface ApiKey {
  readonly kind: 'key';
  readonly key_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly requests_per_second: number;
  /** null: no cap; 0: saved IPs only. */
  readonly new_enrichments_per_day: number | null;
  readonly pending_enrichments: number;
  readonly company_signals: boolean;
}

/** A user whose page calls a route in the process. */
export interface DashboardUser {
  readonly kind: 'user';
  readonly user_id: string;
  readonly partner_id: string;
  /** While the partner is suspended, the page reads and nothing happens. */
  readonly is_suspended: boolean;
}

/** A key or a user that calls in a partner's name. */
export type Caller = ApiKey | DashboardUser;

/** A request that passed the shared refusals in their order (contract, Requests 3). */
export interface ApiRequest {
  /** UUID of this request: `X-Request-ID` and every body's `request_id`. */
  readonly id: string;
  /** Clock time of arrival, milliseconds. */
  readonly receivedAt: number;
  /** `performance.now()` at arrival, for durations. */
  readonly startedAt: number;
  /** Path parameters by name, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** What follows the first `?` of the request target; '' without one. */
  readonly query: string;
  /** The parsed JSON body; undefined where the request had none. */
  readonly body: unknown;
  header(name: string): string | undefined;
  /** The address of the peer's socket. */
  readonly peer: string;
}

export interface PartnerRequest extends ApiRequest {
  readonly caller: Caller;
}

export interface KeyRequest extends PartnerRequest {
  readonly caller: ApiKey;
}

/** What a route answers. The body is text already serialised, so that the hot path can splice it. */
export interface Reply {
  readonly status: number;
  readonly body: string | Buffer | null;
  /** Names in lower case. `content-type` defaults to JSON, `cache-control` to `no-store` under /v1. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** The code of an error answer, for counting and logs. */
  readonly code?: string;
}

interface RouteOf<Request extends ApiRequest> {
  /** OPTIONS: for browsers' preflights, on public paths alone. */
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** Path in Fastify's spelling: `/v1/trackers/:tracker_id`. */
  readonly path: string;
  /**
   * none: a body is ignored on GET and OPTIONS, refused elsewhere. optional: `{}` or nothing. json: required. text:
   * JSON too, also as `text/plain`, which a browser sends to another origin without asking first. form: what an HTML
   * form sends, as URLSearchParams.
   */
  readonly body: 'none' | 'optional' | 'json' | 'text' | 'form';
  /** Bytes; more is 413. */
  readonly bodyLimit: number;
  /** Characters of the request target; more is 414 (lookup and usage: 512). */
  readonly targetLimit?: number;
  /** A budget of the partner's that a call with a key spends besides the key's own rate. */
  readonly budget?: 'webhooks' | 'changes';
  /** Replaces `backend_unavailable` and `backend_timeout`. */
  readonly unavailable?: 'webhooks_unavailable';
  handle(request: Request): Reply | Promise<Reply>;
  /**
   * Sees every answer to an authenticated (on public routes: any) call before it is sent, refusals of the shared
   * rules included, and may replace it (lookup: counts it durably first).
   */
  beforeSend?(request: Request, answer: Reply): Reply | Promise<Reply>;
  /** The route's part of the OpenAPI document; undefined keeps it out (pages, scripts). */
  readonly operation?: ZodOpenApiOperationObject;
}

/** A route without a key. */
export interface PublicRoute extends RouteOf<ApiRequest> {
  readonly access: 'public';
  /** Spends the rates that the request needs before its body is looked at; null, or the refusal. */
  admit?(request: ApiRequest): Reply | null | Promise<Reply | null>;
  /** Shows a person the refusal of a method that the path does not have, or (`/…/*`) of a path below that cannot be decoded. */
  showRefusal?(refused: Reply): Reply;
}

/** A route about a partner's data: it needs a key over HTTP, and the dashboard calls it for a user. */
export interface PartnerRoute extends RouteOf<PartnerRequest> {
  readonly access: 'partner';
}

/** A route that works with the key's own limits or counts: the dashboard cannot call it. */
export interface KeyRoute extends RouteOf<KeyRequest> {
  readonly access: 'key';
}

export type Route = PublicRoute | PartnerRoute | KeyRoute;

export type RouteTable = readonly Route[];

/** What a command carries of the request that gave it, and of who sent that: the request is its own cause. */
export const commandContext = ({ id, receivedAt, caller }: PartnerRequest) => ({
  correlationId: id,
  causationId: id,
  at: receivedAt,
  partnerId: caller.partner_id,
  ...(caller.kind === 'key' ? { keyId: caller.key_id } : { userId: caller.user_id }),
});
