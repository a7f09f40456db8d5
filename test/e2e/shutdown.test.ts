import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { eventually } from '../support/eventually.ts';
import { type Service, startService } from '../support/service.ts';

let service: Service;
let key: string;
/** A receiver of traces that takes connections and never answers. */
const hanging = createServer(() => undefined);

beforeAll(async () => {
  const port = await freePort();
  await new Promise<void>((resolve) => hanging.listen(port, '127.0.0.1', resolve));
  service = await startService({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
  key = (await service.newKey({ requests_per_second: 100_000 })).api_key;
});
afterAll(async () => {
  await service?.remove();
  hanging.close();
});

const SHUTDOWN_MS = 10_000;
const CALLERS = 16;

/** Sends lookups one after the other until the service stops answering. @returns how many were answered */
const keepCalling = async (caller: number, answered: { count: number }): Promise<void> => {
  for (let n = 0; ; n += 1) {
    const ip = `9.${caller}.${n >> 8}.${n & 255}`;
    const request = n % 2 === 0 ? { body: { ip } } : {};
    const path = n % 2 === 0 ? '/v1/lookup' : `/v1/lookup?ip=${ip}`;
    const answer = await service
      .call(n % 2 === 0 ? 'POST' : 'GET', path, { key, ...request })
      .catch(() => null);
    if (answer === null) return;
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500);
    answered.count += 1;
  }
};

const timed = async <T>(work: Promise<T>): Promise<{ value: T; ms: number }> => {
  const started = performance.now();
  return { value: await work, ms: performance.now() - started };
};

describe('SIGTERM', () => {
  it('ends a busy service with 0 within ten seconds without interrupting a response, also when the trace receiver hangs', async () => {
    const answered = { count: 0 };
    const calling = Promise.all(Array.from({ length: CALLERS }, (_, n) => keepCalling(n, answered)));
    await eventually(
      'load is on',
      () => answered.count,
      (count) => count > 100,
      30_000,
    );
    const { value: code, ms } = await timed(service.terminate());
    expect(code).toBe(0);
    expect(ms).toBeLessThan(SHUTDOWN_MS);
    await calling;

    await service.restart();
    const usage = await service.call('GET', '/v1/usage', { key });
    // Each response is counted before it is sent: a count above the received ones shows an interrupted response.
    expect(usage.body.totals.requests).toBe(answered.count);
  });
});
