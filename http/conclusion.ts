/** How a request ends: one answer, seen by the route's hook, whatever went wrong on the way. */
import { type ErrorCode, refusal } from './error-catalog.ts';
import type { Exchange } from './exchange.ts';
import { BackendTimeout, failureCode } from './failures.ts';
import type { Answer, Route } from './route.ts';

/** The part of pino's logger that the shell needs. */
export interface Log {
  error(details: object, message: string): void;
}

export interface ConclusionDeps {
  /** Writes the answer. */
  deliver(exchange: Exchange, answer: Answer): void;
  readonly log: Log;
  /** Milliseconds that authentication, admission and a route's handler may each take. */
  readonly handlerMs: number;
}

export class Conclusion {
  private readonly parts: ConclusionDeps;

  constructor(deps: ConclusionDeps) {
    this.parts = deps;
  }

  /** Ends the exchange with this answer, once: what comes later is dropped. */
  finish(exchange: Exchange, answer: Answer): void {
    if (exchange.settled) return;
    exchange.settled = true;
    stopTimer(exchange);
    const { route, key } = exchange;
    // Without a key it is nobody's call to count.
    if (route.answered === undefined || (key === null && route.access === 'key')) {
      this.write(exchange, answer);
      return;
    }
    try {
      const final = route.answered(exchange, answer);
      if (final instanceof Promise) this.writeLater(exchange, final);
      else this.write(exchange, final);
    } catch (failure) {
      this.write(exchange, this.failed(exchange, failure));
    }
  }

  /** Ends the exchange with the 503 for an exception; too late for an answer, it is still logged. */
  fail(exchange: Exchange, failure: unknown): void {
    this.finish(exchange, this.failed(exchange, failure));
  }

  /** From here on the exchange fails when `stopTimer` does not come in time. */
  startTimer(exchange: Exchange): void {
    const { handlerMs } = this.parts;
    exchange.timer = setTimeout(() => {
      this.fail(exchange, new BackendTimeout(`no answer within ${handlerMs} ms`));
    }, handlerMs);
  }

  /** Delivers; an answer that cannot be written (a header with a line break) must not leave the caller waiting. */
  write(exchange: Exchange, answer: Answer): void {
    try {
      this.parts.deliver(exchange, answer);
    } catch (failure) {
      this.parts.deliver(exchange, this.failed(exchange, failure));
    }
  }

  private writeLater(exchange: Exchange, answer: Promise<Answer>): void {
    answer.then(
      (final) => this.write(exchange, final),
      (failure) => this.write(exchange, this.failed(exchange, failure)),
    );
  }

  private failed(exchange: Exchange, failure: unknown): Answer {
    const code = publicErrorCode(failureCode(failure), exchange.route);
    // Shedding load is no news, and a line for each shed request would be more load.
    if (code !== 'api_busy') this.log(exchange, code, failure);
    return refusal(exchange, code);
  }

  /** Neither query nor headers, which hold addresses and keys; the stack only of what nobody foresaw. */
  private log({ id, route }: Exchange, code: ErrorCode, failure: unknown): void {
    const error = failure instanceof Error ? failure : new Error(String(failure));
    const reason = code === 'service_unavailable' ? { stack: error.stack } : { reason: error.message };
    const { method, path } = route;
    this.parts.log.error({ request_id: id, method, path, code, ...reason }, 'request failed');
  }
}

function publicErrorCode(code: ErrorCode, { unavailable }: Route): ErrorCode {
  return code === 'backend_unavailable' || code === 'backend_timeout' ? (unavailable ?? code) : code;
}

/** The work that the timer watched is done. */
export function stopTimer(exchange: Exchange): void {
  if (exchange.timer !== null) clearTimeout(exchange.timer);
  exchange.timer = null;
}
