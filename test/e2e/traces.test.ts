import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type SeenSpan, startOtlpReceiver } from '../support/otlp.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { NOTE_TELEMETRY, type Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

const PAGE = 'https://www.example.com';
const ADDRESS = '8.8.8.8';
const VISITOR = '1.1.1.1';
const SENT_MS = 15_000;

const newTrace = () => {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
};
const lookUp = (service: Service, key: string, ip: string, headers = {}) =>
  service.call('POST', '/v1/lookup', { key, body: { ip }, headers });

describe('a trace exporter', () => {
  let otlp: Awaited<ReturnType<typeof startOtlpReceiver>>;
  let receiver: Receiver;
  let service: Service;
  let key: string;
  beforeAll(async () => {
    otlp = await startOtlpReceiver();
    receiver = await startReceiver();
    service = await startServiceOnDatabase({
      env: {
        ...NOTE_TELEMETRY,
        OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
        OTEL_SERVICE_NAME: 'doorplate-under-test',
        WEBHOOK_ALLOW_HTTP: '1',
        WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32,::1/128',
        WEBHOOK_ALLOW_PORTS: String(receiver.port),
      },
    });
    key = service.demoKey();
  }, 60_000);
  afterAll(async () => {
    await service?.remove();
    await receiver?.close();
    await otlp?.close();
  });

  const ofTrace = (traceId: string): SeenSpan[] =>
    otlp.spans().filter((span) => span.traceId === traceId || span.links.includes(traceId));
  /** Waits until a trace has all of these spans and returns it. */
  const has = (traceId: string, names: readonly string[]): Promise<SeenSpan[]> =>
    eventually(
      `the spans ${names.join(', ')}`,
      () => ofTrace(traceId),
      (spans) => names.every((wanted) => spans.some(({ name }) => name === wanted)),
      SENT_MS,
    );

  it('receives one trace of a lookup from its request over command, store and projections to its attempt', async () => {
    const { traceId, spanId, headers } = newTrace();
    const answer = await lookUp(service, key, ADDRESS, headers);
    expect(answer.status).toBe(202);
    const spans = await has(traceId, [
      'POST /v1/lookup',
      'Reserve intake',
      'append intake',
      'append enrichment',
      'process projections',
      'attempt enrichment',
      'Complete enrichment',
      'process settle-ended-work',
    ]);
    const one = (name: string) => spans.find((span) => span.name === name);
    const request = one('POST /v1/lookup');
    expect(request).toMatchObject({ service: 'doorplate-under-test', parentId: spanId, failed: false });
    expect(request?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/lookup',
      'http.response.status_code': 202,
      'doorplate.request_id': answer.body.request_id,
    });
    expect(one('Reserve intake')).toMatchObject({ parentId: request?.spanId });
    expect(one('append intake')?.attributes).toMatchObject({ 'db.system.name': 'postgresql' });
    expect(one('attempt enrichment')?.attributes).toMatchObject({ 'doorplate.outcome': 'completed' });
  });

  it('receives one trace of a capture to its delivery, which does not reach the receiver', async () => {
    const body = { name: 'a site', origins: [PAGE] };
    const tracker = (await service.call('POST', '/v1/trackers', { key, body })).body.id;
    const endpoint = {
      name: 'receiver',
      url: `http://localhost:${receiver.port}/secret-path`,
      events: ['session.created', 'reveal.completed'],
    };
    expect((await service.call('POST', '/v1/webhooks', { key, body: endpoint })).status).toBe(201);
    const { traceId, headers } = newTrace();
    const captured = await service.call('POST', '/tracking/collect', {
      headers: { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': VISITOR, ...headers },
      body: {
        tracker_id: tracker,
        token: randomUUID(),
        visit_id: randomUUID(),
        custom: { mail: 'a@b.example' },
      },
    });
    expect(captured.status).toBe(204);
    const spans = await has(traceId, [
      'POST /tracking/collect',
      'append tab',
      'process projections',
      'process queue-webhook-events',
      'attempt delivery',
    ]);
    const attempt = spans.find(({ name }) => name === 'attempt delivery');
    expect(attempt?.attributes).toMatchObject({ 'http.response.status_code': 204, 'doorplate.attempt': 1 });
    expect(receiver.requests.length).toBeGreaterThan(0);
    for (const request of receiver.requests) expect(request.headers).not.toHaveProperty('traceparent');
  });

  it('receives no trace that links a reveal to the enrichment of its address', async () => {
    const session = (await service.call('GET', '/v1/sessions', { key })).body.sessions[0].session_id;
    const { traceId, headers } = newTrace();
    await service.call('POST', `/v1/sessions/${session}/reveal`, {
      key,
      headers: { 'idempotency-key': randomUUID(), ...headers },
    });
    await has(traceId, ['POST /v1/sessions/:session_id/reveal', 'process enrich-reveals']);
    const attempts = await eventually(
      'the address was attempted',
      () => otlp.spans().filter(({ name }) => name === 'attempt enrichment'),
      (some) => some.length === 2,
      SENT_MS,
    );
    const work = attempts.at(-1)?.traceId ?? '';
    await has(work, ['Submit enrichment', 'Complete enrichment', 'process complete-reveals']);
    const deliveries = await eventually(
      'the completion was delivered',
      () => otlp.spans().filter(({ name }) => name === 'attempt delivery'),
      (some) => some.length === 2,
      SENT_MS,
    );
    const ofReveals = [traceId, deliveries.at(-1)?.traceId];
    const ofWork = ofTrace(work).filter(({ name }) => name !== 'process projections');
    expect(
      ofWork.filter((span) => [span.traceId, ...span.links].some((id) => ofReveals.includes(id))),
    ).toEqual([]);
  });

  it('receives no key, address, label, query or path', async () => {
    const query = `ip=${ADDRESS}`;
    const { traceId, headers } = newTrace();
    expect((await service.call('GET', `/v1/lookup?${query}`, { key, headers })).status).toBe(200);
    await has(traceId, ['GET /v1/lookup']);
    const bytes = Buffer.concat(otlp.requests.map(({ body }) => body)).toString('latin1');
    expect(bytes).toContain('/v1/lookup');
    for (const text of [key, ADDRESS, VISITOR, 'a@b.example', 'secret-path', query, 'localhost']) {
      expect(bytes.includes(text), text).toBe(false);
    }
  });

  it('receives pending spans at shutdown', async () => {
    const { traceId, headers } = newTrace();
    await service.call('GET', '/v1/trackers', { key, headers });
    expect(await service.terminate()).toBe(0);
    expect(ofTrace(traceId).map(({ name }) => name)).toContain('GET /v1/trackers');
    expect(service.stderr()).toContain('loaded @opentelemetry/sdk-trace');
  });
});
