import { describe, expect, it } from 'vitest';
import { answer, BROKEN, failureOf, fakeService, type Reply, refused } from './fakes.ts';

const IP = '203.0.114.9';
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const pending = answer(202, { ip: IP, status: 'pending', company: null }, { 'retry-after': '20' });
const found = { ip: IP, status: 'complete', stale: false, refresh_status: 'not_needed' };
const complete = answer(200, found);
const receipt = { reveal_id: 'r1', session_id: 's1', status: 'pending', result: null };
const accepted = answer(202, receipt, { 'retry-after': '20' });
const done = { ...receipt, status: 'complete', result: { company_found: true } };
const revealed = answer(200, done);

const lines = (asked: readonly { method: string; url: string }[]) =>
  asked.map(({ method, url }) => `${method} ${url}`);
const keys = (asked: readonly { headers: Readonly<Record<string, string>> }[]) =>
  new Set(asked.flatMap(({ headers }) => headers['Idempotency-Key'] ?? []));

describe('a lookup', () => {
  it('of a saved result is one POST', async () => {
    const { client, until, asked, now } = fakeService([complete]);
    await expect(until(client.lookup(IP))).resolves.toEqual(found);
    expect(lines(asked)).toEqual(['POST /v1/lookup']);
    expect(now()).toBe(0);
  });

  it('of a new address is one POST, and GETs no sooner than the service asks', async () => {
    const { client, until, asked } = fakeService([pending, pending, complete]);
    await expect(until(client.lookup(IP))).resolves.toEqual(found);
    expect(lines(asked)).toEqual(['POST /v1/lookup', `GET /v1/lookup?ip=${IP}`, `GET /v1/lookup?ip=${IP}`]);
    for (const [n, { at }] of asked.slice(1).entries()) {
      expect(at - (asked[n]?.at ?? 0)).toBeGreaterThanOrEqual(20_000);
      expect(at - (asked[n]?.at ?? 0)).toBeLessThan(23_000);
    }
  });

  it('repeats a POST whose submission is unconfirmed, and continues after transient errors', async () => {
    const { client, until, asked } = fakeService([
      refused(503, 'submission_unconfirmed', 15),
      BROKEN,
      pending,
      refused(503, 'api_busy', 5),
      refused(429, 'rate_limit', 1),
      complete,
    ]);
    await expect(until(client.lookup(IP))).resolves.toEqual(found);
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'GET', 'GET', 'GET']);
  });

  it('ends before a deadline that the next poll would miss, with the last response and without a verdict', async () => {
    const { client, until, now } = fakeService([pending], { deadlineMs: 40_000 });
    const error = await until(failureOf(client.lookup(IP)));
    expect(error).toMatchObject({ kind: 'deadline', outcome: 'unknown', unfinished: { status: 'pending' } });
    expect(now()).toBeLessThan(40_000);
  });

  it('does not poll in a busy loop when a response asks for no delay', async () => {
    const withoutDelay = answer(202, { ip: IP, status: 'pending', company: null }, { 'retry-after': '0' });
    const { client, until, asked } = fakeService([withoutDelay]);
    await until(failureOf(client.lookup(IP)));
    expect(asked.length).toBeLessThan(10);
  });

  it('waits for as long as the service asks, when the deadline allows it', async () => {
    const { client, until } = fakeService([refused(429, 'enrichment_capacity', 60), complete]);
    await expect(until(client.lookup(IP))).resolves.toEqual(found);
    const late = fakeService([refused(429, 'enrichment_limit', 3_600)]);
    expect(await late.until(failureOf(late.client.lookup(IP)))).toMatchObject({
      code: 'enrichment_limit',
      outcome: 'refused',
      retryAfterSeconds: 3_600,
    });
    expect(late.asked).toHaveLength(1);
  });

  it('stops on a signal between two polls', async () => {
    const { client, until, asked } = fakeService([pending]);
    const stop = new AbortController();
    const failed = failureOf(client.lookup(IP, { signal: stop.signal }));
    await new Promise(setImmediate);
    stop.abort('enough');
    expect(await until(failed)).toMatchObject({ kind: 'aborted', cause: 'enough', unfinished: { ip: IP } });
    expect(asked).toHaveLength(1);
  });

  it('returns a stale result, or waits for its refresh when requested', async () => {
    const stale = (refresh_status: string) =>
      answer(200, { ...found, stale: true, refresh_status }, { 'retry-after': '20' });
    const taken = fakeService([stale('pending')]);
    await expect(taken.until(taken.client.lookup(IP))).resolves.toMatchObject({ stale: true });

    // A deferred lookup is submitted again; one in progress is read.
    const { client, until, asked } = fakeService([stale('deferred'), stale('pending'), complete]);
    await expect(until(client.lookup(IP, { waitForRefresh: true }))).resolves.toEqual(found);
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET']);
  });
});

describe('a reveal', () => {
  it('creates an Idempotency-Key and returns it with the receipt', async () => {
    const { client, until, asked } = fakeService([revealed]);
    const { idempotencyKey, receipt } = await until(client.reveal('s1'));
    expect(idempotencyKey).toMatch(UUID_V4);
    expect(receipt).toEqual(done);
    expect(keys(asked)).toEqual(new Set([idempotencyKey]));
    const other = fakeService([revealed]);
    expect((await other.until(other.client.reveal('s1'))).idempotencyKey).not.toBe(idempotencyKey);
  });

  it('polls the receipt until it is complete', async () => {
    const { client, until, asked } = fakeService([accepted, accepted, revealed]);
    const { receipt } = await until(client.reveal('s1', { idempotencyKey: 'mine' }));
    expect(receipt).toEqual(done);
    expect(lines(asked)).toEqual(['POST /v1/sessions/s1/reveal', 'GET /v1/reveals/r1', 'GET /v1/reveals/r1']);
    expect(asked.every(({ at }, n) => n === 0 || at - (asked[n - 1]?.at ?? 0) >= 20_000)).toBe(true);
  });

  it.each<[string, Reply]>([
    ['an answer was lost', BROKEN],
    ['none came', 'hangs'],
    ['it is unconfirmed', refused(503, 'reveal_unconfirmed', 5)],
    ['the service has no room', refused(503, 'tracking_unavailable', 5)],
    ['there are too many', refused(429, 'tracking_capacity', 1)],
  ])('is requested again with the same key when %s', async (_, reply) => {
    const { client, until, asked } = fakeService([reply, reply, accepted, reply, revealed]);
    const { idempotencyKey } = await until(client.reveal('s1'));
    expect(keys(asked)).toEqual(new Set([idempotencyKey]));
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'GET', 'GET']);
  });

  it('that fails reports its key, so that it can be resumed', async () => {
    const { client, until, asked } = fakeService([BROKEN]);
    const error = await until(failureOf(client.reveal('s1')));
    const [key] = keys(asked);
    expect(key).toMatch(UUID_V4);
    expect(error).toMatchObject({ kind: 'network', outcome: 'unknown', idempotencyKey: key });
    expect(keys(asked).size).toBe(1);
  });

  it('that misses its deadline reports its key and its receipt', async () => {
    const { client, until } = fakeService([accepted]);
    const error = await until(failureOf(client.reveal('s1', { deadlineMs: 10_000, idempotencyKey: 'mine' })));
    expect(error).toMatchObject({
      kind: 'deadline',
      outcome: 'unknown',
      idempotencyKey: 'mine',
      unfinished: receipt,
    });
  });

  it('that was accepted is not reported as refused, whatever the refusal of its receipt', async () => {
    const { client, until } = fakeService([accepted, refused(401, 'unauthorized')]);
    const error = await until(failureOf(client.reveal('s1')));
    expect(error).toMatchObject({ status: 401, outcome: 'unknown', unfinished: receipt });
  });
});
