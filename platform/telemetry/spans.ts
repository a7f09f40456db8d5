import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Creates spans. While tracing is off, the default, each function only calls its argument: the SDK behind
 * `platform/telemetry/telemetry.ts` is loaded only if an exporter is configured (docs/configuration.md, "Traces").
 */

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOf {
  readonly name: string;
  /** client: the span waits for an external call. */
  readonly kind?: 'internal' | 'client' | 'consumer';
  readonly attributes?: Attributes;
  /**
   * `traceparent`s of the events that caused the work: a single trace becomes the parent, several become links. Default:
   * the active span is the parent.
   */
  readonly causes?: readonly (string | undefined)[];
}

/** Adds attributes that are known only later. */
export type Note = (attributes: Attributes) => void;

export interface Tracing {
  inSpan<T>(span: SpanOf, work: (note: Note) => Promise<T>): Promise<T>;
  serve(route: string, raw: IncomingMessage, response: ServerResponse, id: string, work: () => void): void;
  withoutTrace<T>(work: () => T): T;
  traceparent(): string | undefined;
}

let tracing: Tracing | null = null;

/** Sets the tracing backend; null turns tracing off. */
export function useTracing(one: Tracing | null): void {
  tracing = one;
}

export const isTracing = (): boolean => tracing !== null;

const noNote: Note = () => undefined;

/** Runs work in a span. `of` is called only while tracing is on. */
export const inSpan = <T>(of: () => SpanOf, work: (note: Note) => Promise<T>): Promise<T> =>
  tracing === null ? work(noNote) : tracing.inSpan(of(), work);

/** Serves a request in a span that continues the request's `traceparent` and ends with the response. */
export const serveInSpan: Tracing['serve'] = (route, raw, response, id, work) => {
  if (tracing === null) work();
  else tracing.serve(route, raw, response, id, work);
};

/** Runs work without a parent span: work for many requests, or whose cause must stay hidden. */
export const withoutTrace = <T>(work: () => T): T => (tracing === null ? work() : tracing.withoutTrace(work));

/** Returns the current span's W3C trace parent; undefined if there is none or it is not sampled. */
export const traceparent = (): string | undefined => tracing?.traceparent();
