import type { Config } from './config.ts';
import type { Logger } from './log.ts';
import { useTracing } from './spans.ts';

/** Starts tracing if an exporter is configured. @returns the function that ends it */
export const startTracing = async (config: Config, log: Logger): Promise<() => Promise<void>> => {
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || config.OTEL_SDK_DISABLED) return async () => undefined;
  const { startTelemetry } = await import('./telemetry.ts');
  const telemetry = startTelemetry(config, log);
  useTracing(telemetry);
  return async () => {
    await telemetry.close();
    useTracing(null);
  };
};
