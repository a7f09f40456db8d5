import { afterAll, expect, it, vi } from 'vitest';
import { startTelemetry } from '../../platform/telemetry/telemetry.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const VALID = `00-${TRACE}-b7ad6b7169203331-01`;

vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:9');
const telemetry = startTelemetry(
  {
    OTEL_SERVICE_NAME: undefined,
    OTEL_TRACES_SAMPLER: 'parentbased_always_on',
    OTEL_TRACES_SAMPLER_ARG: 1,
  },
  { warn: () => undefined },
);
afterAll(async () => {
  await telemetry.close();
  vi.unstubAllEnvs();
});

const traceOf = (cause: string): Promise<string | undefined> =>
  telemetry.inSpan({ name: 'work', causes: [cause] }, async () => telemetry.traceparent()?.split('-')[1]);

it.each([VALID, `${VALID.replace('00-', '01-')}-more`])('continues a trace with %s', async (cause) => {
  expect(await traceOf(cause)).toBe(TRACE);
});

it.each([
  ['two headers', `${VALID}, ${VALID}`],
  ['the version that there is not', VALID.replace('00-', 'ff-')],
  ['no trace', VALID.replace(TRACE, '0'.repeat(32))],
  ['capital letters', VALID.toUpperCase()],
  ['something after it', `${VALID}0`],
  ['a long text', 'x'.repeat(16_000)],
])('starts a new trace when there is %s', async (_, cause) => {
  expect(await traceOf(cause)).toBeUndefined();
});
