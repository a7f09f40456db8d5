/**
 * The order in which a request on a known path and method is refused (contract, Requests 3): 414, 401, 429, 415, 413, invalid_json; then the route. Written as steps that call the next
 * one, since a saved lookup should cost no promise that it does not need.
 */
import { inThisSpan } from '../platform/spans.ts';
import { bearerToken } from './authorization.ts';
import { Conclusion, type ConclusionDeps, stopTimer } from './conclusion.ts';
import { type ErrorCode, refusal } from './error-catalog.ts';
import type { Exchange } from './exchange.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import { hasBody, parseBody, readBody, refuseByHeaders } from './request-body.ts';
import type { Answer, CallingKey, Route } from './route.ts';

/** Why a call is not admitted, and after how many seconds it may be. */
export interface Inadmissible {
  readonly code: ErrorCode;
  readonly retryAfter: number;
}

export interface PipelineDeps extends ConclusionDeps {
  /** Whose key this is; null for a key that is unknown, expired or revoked. */
  authenticate(token: string): CallingKey | null | Promise<CallingKey | null>;
  /** Spends the rates that the call needs; null when all allow it. */
  admit(key: CallingKey, route: Route): Inadmissible | null | Promise<Inadmissible | null>;
  /** Told of a caller that left before its request had arrived: there is no answer. */
  gone(exchange: Exchange): void;
}

type Step<T> = (this: Pipeline, exchange: Exchange, value: T) => void;

const NO_BYTES = Buffer.alloc(0);

export class Pipeline {
  private readonly parts: PipelineDeps;
  private readonly end: Conclusion;

  constructor(deps: PipelineDeps) {
    this.parts = deps;
    this.end = new Conclusion(deps);
  }

  /** The first step. Never throws; ends in one answer, or in none if the caller has left. */
  enter(exchange: Exchange): void {
    const { route, raw } = exchange;
    if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
      // RFC 9112 section 3.2. The catalog has no code of its own for it; see raw-refusals.ts.
      this.end.write(exchange, refusal(exchange, 'invalid_body', { message: 'The Host header is missing.' }));
    } else if (exceedsTarget(route.targetLimit, raw.url)) {
      this.end.write(exchange, refusal(exchange, 'uri_too_long'));
    } else if (route.access === 'public') {
      this.awaited(exchange, () => route.admit?.(exchange) ?? null, this.admittedPublicly);
    } else {
      this.identify(exchange);
    }
  }

  private identify(exchange: Exchange): void {
    const token = bearerToken(exchange.raw.rawHeaders, exchange.query);
    if (token === null) this.refuse(exchange, 'unauthorized');
    else this.awaited(exchange, () => this.parts.authenticate(token), this.identified);
  }

  private identified(exchange: Exchange, key: CallingKey | null): void {
    if (key === null) {
      this.refuse(exchange, 'unauthorized');
      return;
    }
    exchange.key = key;
    this.awaited(exchange, () => this.parts.admit(key, exchange.route), this.admitted);
  }

  private admitted(exchange: Exchange, refused: Inadmissible | null): void {
    if (refused === null) this.receive(exchange);
    else this.end.finish(exchange, refusal(exchange, refused.code, { retryAfter: refused.retryAfter }));
  }

  private admittedPublicly(exchange: Exchange, refused: Answer | null): void {
    if (refused === null) this.receive(exchange);
    else this.end.finish(exchange, refused);
  }

  private receive(exchange: Exchange): void {
    const { route, raw } = exchange;
    if (route.method === 'GET' || route.method === 'OPTIONS') {
      this.handle(exchange);
      return;
    }
    const refused = refuseByHeaders(route, raw);
    if (refused !== null) this.refuse(exchange, refused);
    else if (!hasBody(raw)) this.accept(exchange, NO_BYTES);
    else
      readBody(
        raw,
        route.bodyLimit,
        inThisSpan((body) => this.received(exchange, body)),
      );
  }

  private received(exchange: Exchange, body: Buffer | 'too_large' | 'gone'): void {
    if (body === 'gone') {
      exchange.settled = true;
      this.parts.gone(exchange);
    } else if (body === 'too_large') this.refuse(exchange, 'body_too_large');
    else this.guarded(this.accept, exchange, body);
  }

  private accept(exchange: Exchange, bytes: Buffer): void {
    const typed = exchange.header('content-type') !== undefined;
    const parsed = parseBody(exchange.route.body, bytes, typed);
    if ('refused' in parsed) {
      this.refuse(exchange, parsed.refused);
      return;
    }
    exchange.body = parsed.value;
    this.handle(exchange);
  }

  private handle(exchange: Exchange): void {
    const { key, route } = exchange;
    const work = () => route.handle(exchange);
    this.awaited(exchange, key ? () => onBehalfOf(key.partner_id, work) : work, this.handled);
  }

  private handled(exchange: Exchange, answer: Answer): void {
    this.end.finish(exchange, answer);
  }

  private refuse(exchange: Exchange, code: ErrorCode): void {
    this.end.finish(exchange, refusal(exchange, code));
  }

  /** Goes on with a value that may be there at once, and within the time limit if it is not. */
  private awaited<T>(exchange: Exchange, work: () => T | Promise<T>, next: Step<T>): void {
    try {
      const value = work();
      if (value instanceof Promise) this.wait(exchange, value, next);
      else next.call(this, exchange, value);
    } catch (failure) {
      this.end.fail(exchange, failure);
    }
  }

  private wait<T>(exchange: Exchange, promise: Promise<T>, next: Step<T>): void {
    this.end.startTimer(exchange);
    promise.then(
      (value) => {
        if (exchange.settled) return;
        stopTimer(exchange);
        this.guarded(next, exchange, value);
      },
      (failure) => this.end.fail(exchange, failure),
    );
  }

  private guarded<T>(step: Step<T>, exchange: Exchange, value: T): void {
    try {
      step.call(this, exchange, value);
    } catch (failure) {
      this.end.fail(exchange, failure);
    }
  }
}

/** Whether the request target, path and query, is longer than its path allows (414). */
export function exceedsTarget(limit: number | undefined, target: string | undefined): boolean {
  return limit !== undefined && (target ?? '').length > limit;
}
