import { describe, expect, it } from 'vitest';
import type { LookedUp, LookupMany } from '../../../clients/typescript/src/index.ts';
import { type Asked, answer, BROKEN, failureOf, fakeService, type Reply, refused } from './fakes.ts';

const ipOf = ({ url, body }: Asked): string =>
  (body as { ip: string } | undefined)?.ip ?? decodeURIComponent(url.split('ip=')[1] ?? '');
const complete = (asked: Asked): Reply =>
  answer(200, { ip: ipOf(asked), status: 'complete', refresh_status: 'not_needed' });
const pending = (asked: Asked): Reply =>
  answer(202, { ip: ipOf(asked), status: 'pending' }, { 'retry-after': '15' });
/** Saved after it was asked for, and asked about once. */
const enriching = (): ((asked: Asked) => Reply) => (asked) =>
  asked.method === 'POST' ? pending(asked) : complete(asked);

const all = async (many: LookupMany): Promise<LookedUp[]> => Array.fromAsync(many);
const addresses = (count: number) => Array.from({ length: count }, (_, n) => `9.1.${n >> 8}.${n & 255}`);

describe('lookupMany', () => {
  it('looks up each address once, however it is spelled, and polls what is new', async () => {
    const { client, until, asked } = fakeService(enriching());
    const many = client.lookupMany(['2A00:1450::1', '2a00:1450:0:0::1', ' 9.1.1.1', '::ffff:9.1.1.1']);
    const results = await until(all(many));
    expect(results.map(({ ip, result }) => [ip, result?.status])).toEqual([
      ['2a00:1450::1', 'complete'],
      ['9.1.1.1', 'complete'],
    ]);
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET', 'GET']);
    expect(many.progress).toEqual({ total: 2, done: 2, pending: 0, waiting: null });
  });

  it('has no more requests under way than asked for', async () => {
    let [underWay, most] = [0, 0];
    const { client, until } = fakeService([], {
      fetch: (async (_url: string, { body }: RequestInit) => {
        underWay += 1;
        most = Math.max(most, underWay);
        await new Promise(setImmediate);
        underWay -= 1;
        return complete({ body: JSON.parse(String(body)) } as Asked);
      }) as typeof globalThis.fetch,
    });
    await until(all(client.lookupMany(addresses(50), { concurrency: 3 })));
    expect(most).toBe(3);
  });

  it('pauses submissions alone while the intake is full, and says why', async () => {
    let accepted = 0;
    const seen: unknown[] = [];
    const { client, until, asked } = fakeService((one) => {
      if (one.method === 'GET') return complete(one);
      accepted += 1;
      if (accepted === 3) return refused(429, 'enrichment_capacity', 60);
      return pending(one);
    });
    const many = client.lookupMany(addresses(6), { concurrency: 1 });
    const reading = (async () => {
      for await (const { ip } of many) seen.push([ip, many.progress.waiting?.code ?? null]);
    })();
    await until(reading);
    expect(seen.slice(0, 2).map((one) => (one as string[])[1])).toEqual([
      'enrichment_capacity',
      'enrichment_capacity',
    ]);
    expect(seen).toHaveLength(6);
    const posts = asked.filter(({ method }) => method === 'POST').map(({ at }) => at);
    expect(posts[3]).toBeGreaterThanOrEqual(60_000);
    expect(new Set(asked.filter(({ method }) => method === 'POST').map(ipOf)).size).toBe(6);
  });

  it('pauses everything at the key’s rate', async () => {
    let limited = false;
    const { client, until, asked } = fakeService((one) => {
      if (asked.length === 2 && !limited) {
        limited = true;
        return refused(429, 'rate_limit', 1);
      }
      return complete(one);
    });
    const results = await until(all(client.lookupMany(addresses(4), { concurrency: 1 })));
    expect(results).toHaveLength(4);
    expect(asked[3]?.at).toBeGreaterThanOrEqual(1_000);
  });

  it('repeats what has an unknown outcome, and gives up on it after so many attempts', async () => {
    const { client, until, asked } = fakeService((one) => (ipOf(one) === '9.1.0.1' ? BROKEN : complete(one)));
    const results = await until(all(client.lookupMany(addresses(3), { attempts: 4 })));
    const failed = results.find(({ ip }) => ip === '9.1.0.1');
    expect(failed?.error).toMatchObject({ kind: 'network', outcome: 'unknown' });
    expect(asked.filter((one) => ipOf(one) === '9.1.0.1')).toHaveLength(4);
    expect(results).toHaveLength(3);
  });

  it('gives a refusal of one address as its result, and continues with the others', async () => {
    const { client, until } = fakeService((one) =>
      ipOf(one) === '10.0.0.1' ? refused(400, 'invalid_ip') : complete(one),
    );
    const results = await until(all(client.lookupMany(['10.0.0.1', '9.1.1.1'])));
    expect(results.map(({ ip, error }) => [ip, error?.code])).toEqual([
      ['10.0.0.1', 'invalid_ip'],
      ['9.1.1.1', undefined],
    ]);
  });

  it('leaves out what an earlier run has finished', async () => {
    const { client, until, asked } = fakeService(complete);
    await until(all(client.lookupMany(addresses(5), { skip: addresses(3) })));
    expect(asked.map(ipOf)).toEqual(['9.1.0.3', '9.1.0.4']);
  });

  it('ends with an error, not as if it were done, when its signal comes while a result is being handled', async () => {
    const stop = new AbortController();
    const { client, until } = fakeService((one) => (ipOf(one) === '9.1.0.0' ? complete(one) : 'hangs'));
    const reading = (async () => {
      for await (const _ of client.lookupMany(addresses(3), { signal: stop.signal })) {
        stop.abort(new Error('stopped'));
        for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
      }
    })();
    await expect(until(failureOf(reading))).resolves.toMatchObject({ kind: 'aborted' });
  });

  it('ends with an error of the kind aborted on its signal, and asks for nothing more', async () => {
    const stop = new AbortController();
    const { client, until, asked } = fakeService(pending);
    const reading = all(client.lookupMany(addresses(5), { signal: stop.signal }));
    await new Promise(setImmediate);
    stop.abort(new Error('stopped'));
    await expect(until(failureOf(reading))).resolves.toMatchObject({ kind: 'aborted' });
    const before = asked.length;
    await new Promise(setImmediate);
    expect(asked).toHaveLength(before);
  });

  it('ends on its signal also while nothing is under way and no address comes', async () => {
    const stop = new AbortController();
    async function* quiet(): AsyncGenerator<string> {
      yield '9.1.1.1';
      await new Promise(() => undefined);
    }
    const { client, until } = fakeService(complete);
    const reading = (async () => {
      for await (const _ of client.lookupMany(quiet(), { signal: stop.signal }))
        setImmediate(() => stop.abort(new Error('stopped')));
    })();
    reading.catch(() => undefined);
    await new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
    await expect(until(failureOf(reading))).resolves.toMatchObject({ kind: 'aborted' });
  });
});
