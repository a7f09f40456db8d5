/**
 * Where spans are made. Off, which is the rule, each of these is a call of what it is given and nothing more: the SDK
 * behind `platform/telemetry.ts` is loaded only where an exporter is configured (docs/operations.md, "Traces").
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOf {
  readonly name: string;
  /** client: it waits for something outside of this process. */
  readonly kind?: 'internal' | 'client' | 'consumer';
  readonly attributes?: Attributes;
  /**
   * `traceparent`s of what led to it, over the event log: of one trace it becomes a part, several it links to. Default:
   * it belongs to the span that it is made in.
   */
  readonly causes?: readonly (string | undefined)[];
}

/** Adds what is only known later. */
export type Note = (attributes: Attributes) => void;

export interface Tracing {
  inSpan<T>(span: SpanOf, work: (note: Note) => Promise<T>): Promise<T>;
  serve(route: string, raw: IncomingMessage, response: ServerResponse, id: string, work: () => void): void;
  bind<Args extends unknown[]>(work: (...args: Args) => void): (...args: Args) => void;
  withoutTrace<T>(work: () => T): T;
  traceparent(): string | undefined;
}

let tracing: Tracing | null = null;

/** null: off. */
export const useTracing = (one: Tracing | null): void => {
  tracing = one;
};

export const isTracing = (): boolean => tracing !== null;

const noNote: Note = () => undefined;

/** Does the work within a span. What it is of is asked only when tracing is on. */
export const inSpan = <T>(of: () => SpanOf, work: (note: Note) => Promise<T>): Promise<T> =>
  tracing === null ? work(noNote) : tracing.inSpan(of(), work);

/** Answers a request within a span that goes on with its `traceparent` and ends with its answer. */
export const serveInSpan = (
  route: string,
  raw: IncomingMessage,
  response: ServerResponse,
  id: string,
  work: () => void,
): void => {
  if (tracing === null) work();
  else tracing.serve(route, raw, response, id, work);
};

/** Keeps a callback in the span that it is given in, whoever calls it. */
export const inThisSpan = <Args extends unknown[]>(
  work: (...args: Args) => void,
): ((...args: Args) => void) => (tracing === null ? work : tracing.bind(work));

/** Does what belongs to no span around it: work of many, or work whose cause nobody may find out. */
export const withoutTrace = <T>(work: () => T): T => (tracing === null ? work() : tracing.withoutTrace(work));

/** The span around, as W3C writes it; undefined: none, or one that is not recorded. */
export const traceparent = (): string | undefined => tracing?.traceparent();
