import type { ZodOpenApiOperationObject } from 'zod-openapi';

/** The key of an authenticated call, as the read model has it: what limits and scopes need, no secret. */
export interface CallingKey {
  readonly key_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly requests_per_second: number;
  /** null: no cap; 0: saved IPs only. */
  readonly new_enrichments_per_day: number | null;
  readonly pending_enrichments: number;
  readonly company_signals: boolean;
}

/** A request that passed the shared refusals in their order (contract, Requests 3). */
export interface ApiRequest {
  /** UUID of this request: `X-Request-ID` and every body's `request_id`. */
  readonly id: string;
  /** Clock time of arrival, milliseconds. */
  readonly receivedAt: number;
  /** `performance.now()` at arrival, for durations. */
  readonly startedAt: number;
  /** null on public routes alone. */
  readonly key: CallingKey | null;
  /** A user of the dashboard. `key` then holds the partner's rights, and is not a stored key. */
  readonly userId?: string;
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

/** What a route answers. The body is text already serialised, so that the hot path can splice it. */
export interface Answer {
  readonly status: number;
  readonly body: string | Buffer | null;
  /** Names in lower case. `content-type` defaults to JSON, `cache-control` to `no-store` under /v1. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The code of an error answer, for counting and logs. */
  readonly code?: string;
}

export interface Route {
  /** OPTIONS: for browsers' preflights, on public paths alone. */
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** As Fastify spells it: `/v1/trackers/:tracker_id`. */
  readonly path: string;
  readonly access: 'public' | 'key';
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
  /** On public routes: spends the rates that the request needs before its body is looked at; null, or the refusal. */
  admit?(request: ApiRequest): Answer | null | Promise<Answer | null>;
  handle(request: ApiRequest): Answer | Promise<Answer>;
  /**
   * Sees every answer to an authenticated (on public routes: any) call before it is sent, refusals of the shared
   * rules included, and may replace it (lookup: counts it durably first).
   */
  answered?(request: ApiRequest, answer: Answer): Answer | Promise<Answer>;
  /** The route's part of the OpenAPI document; undefined keeps it out (pages, scripts). */
  readonly operation?: ZodOpenApiOperationObject;
}

export type RouteTable = readonly Route[];
