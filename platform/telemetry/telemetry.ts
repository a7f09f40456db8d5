import {
  context,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { endsWithin } from '../clock/waiting.ts';
import type { Config } from '../config/config.ts';
import type { Logger } from './log.ts';
import type { SpanOf, Tracing } from './spans.ts';

export interface Telemetry extends Tracing {
  /** Sends waiting spans, with a short time limit. */
  close(): Promise<void>;
}

/** Spans that wait while the receiver is slow or away; further ones are dropped. */
const QUEUE = 2_048;
const EXPORT_MS = 5_000;
/** Part of the ten seconds of a shutdown. */
const FLUSH_MS = 1_500;
/** Minimum interval between warnings about an unavailable receiver. */
const WARN_INTERVAL_MS = 60_000;
const LINKS = 64;

type Settings = Pick<Config, 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'>;

/** Starts sending spans to an OTLP receiver in the background; the SDK's own variables set its address and headers. */
export function startTelemetry(settings: Settings, log: Pick<Logger, 'warn'>): Telemetry {
  const contexts = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(contexts);
  diag.setLogger(diagnosticLogger(log), DiagLogLevel.WARN);
  const provider = createProvider(settings);
  const tracer = provider.getTracer('doorplate');

  return {
    inSpan: (of, work) => {
      // Without a sampled cause, the work is not traced either.
      if (of.causes && spanContexts(of.causes).length === 0) return work(() => undefined);
      const span = startSpan(tracer, of);
      return context.with(trace.setSpan(context.active(), span), async () => {
        try {
          return await work((attributes) => span.setAttributes({ ...attributes }));
        } catch (error) {
          failed(span, error instanceof Error ? error.name : typeof error);
          throw error;
        } finally {
          span.end();
        }
      });
    },
    serve: (...request) => serve(tracer, ...request),
    withoutTrace: (work) => context.with(ROOT_CONTEXT, work),
    traceparent: () => {
      const active = trace.getSpanContext(context.active());
      if (active === undefined || (active.traceFlags & TraceFlags.SAMPLED) === 0) return undefined;
      return `00-${active.traceId}-${active.spanId}-01`;
    },
    close: async () => {
      await endsWithin(provider.shutdown(), FLUSH_MS).catch(() => undefined);
      context.disable();
      diag.disable();
    },
  };
}

const createProvider = (settings: Settings): TracerProvider =>
  new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'doorplate' }))
      // Reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ timeoutMillis: EXPORT_MS }),
        maxQueueSize: QUEUE,
        exportTimeoutMillis: EXPORT_MS,
        scheduledDelayMillis: 1_000,
      }),
    ],
  });

/** Starts a span under the active one, or under its causes: as its parent if they are of one trace, else as links. */
function startSpan(tracer: Tracer, { name, kind = 'internal', attributes = {}, causes }: SpanOf): Span {
  const known = causes && spanContexts(causes);
  const [only] = known ?? [];
  const isOne = only !== undefined && known?.every(({ traceId }) => traceId === only.traceId);
  const parent =
    known === undefined ? context.active() : isOne ? trace.setSpanContext(ROOT_CONTEXT, only) : ROOT_CONTEXT;
  const links: Link[] =
    isOne || known === undefined ? [] : known.slice(0, LINKS).map((one) => ({ context: one }));
  return tracer.startSpan(name, { kind: KINDS[kind], attributes: { ...attributes }, links }, parent);
}

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER } as const;

/** Records only the error's kind, because a message may hold an address or worse. */
function failed(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Records no URL, header or address, because a path may name a session and a query an address. */
function serve(tracer: Tracer, ...[route, raw, response, id, work]: Parameters<Tracing['serve']>): void {
  const given = raw.headers.traceparent;
  const [caller] = spanContexts([typeof given === 'string' ? given : undefined]);
  const parent = caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
  const method = raw.method ?? '';
  const attributes = { 'http.request.method': method, 'http.route': route, 'doorplate.request_id': id };
  const span = tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);
  response.once('close', () => {
    if (response.headersSent) span.setAttribute('http.response.status_code', response.statusCode);
    if (!response.writableFinished) failed(span, 'caller_left');
    else if (response.statusCode >= 500) failed(span, String(response.statusCode));
    span.end();
  });
  context.with(trace.setSpan(parent, span), work);
}

/** A repeated header, which Node joins with a comma, is invalid (W3C Trace Context, "Mutating the traceparent Field"). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** Parses and deduplicates trace parents; invalid ones are left out. */
const spanContexts = (traceparents: readonly (string | undefined)[]): SpanContext[] =>
  [...new Set(traceparents)].flatMap((text) => {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? [];
    if (traceId === undefined || spanId === undefined || flags === undefined) return [];
    const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
    return isSpanContextValid(found) ? [found] : [];
  });

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: Settings): Sampler {
  const [based, what] = name.startsWith('parentbased_')
    ? [true, name.slice('parentbased_'.length)]
    : [false, name];
  const root =
    what === 'always_on'
      ? new AlwaysOnSampler()
      : what === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio);
  return based ? new ParentBasedSampler({ root }) : root;
}

function diagnosticLogger(log: Pick<Logger, 'warn'>) {
  let last = Number.NEGATIVE_INFINITY;
  const warn = (text: string): void => {
    if (performance.now() - last < WARN_INTERVAL_MS) return;
    last = performance.now();
    log.warn({ error: text }, 'spans could not be sent; the SDK drops or retries them');
  };
  const nothing = () => undefined;
  return { error: warn, warn, info: nothing, debug: nothing, verbose: nothing };
}
