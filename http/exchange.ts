import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApiRequest, CallingKey, Route } from './route.ts';

/** One request on its way through the shared rules: what a route may see of it, and how far it has come. */
export class Exchange implements ApiRequest {
  readonly id: string;
  readonly receivedAt: number;
  readonly startedAt: number;
  readonly params: Readonly<Record<string, string>>;
  readonly query: string;
  readonly route: Route;
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  key: CallingKey | null = null;
  body: unknown = undefined;
  /** An answer has been chosen, or the caller is gone: whatever still comes is too late. */
  settled = false;
  timer: NodeJS.Timeout | null = null;

  constructor(
    route: Route,
    raw: IncomingMessage,
    response: ServerResponse,
    id: string,
    params: Readonly<Record<string, string>>,
    receivedAt: number,
  ) {
    this.route = route;
    this.raw = raw;
    this.response = response;
    this.id = id;
    this.params = params;
    this.receivedAt = receivedAt;
    this.startedAt = performance.now();
    this.query = queryOf(raw.url ?? '');
  }

  /** The peer's address; '' once the socket is gone. */
  get peer(): string {
    return this.raw.socket.remoteAddress ?? '';
  }

  /** The value of a header; several of one name are joined as RFC 9110 section 5.3 has it. */
  header(name: string): string | undefined {
    const value = this.raw.headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(', ') : value;
  }
}

function queryOf(target: string): string {
  const mark = target.indexOf('?');
  return mark === -1 ? '' : target.slice(mark + 1);
}
