import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { COMPANY, respond, startProvider, type TestProvider } from '../support/http-provider.ts';
import { type Service, startService } from '../support/service.ts';
import { describeOnStores } from '../support/stores.ts';

const PAGE = 'https://www.example.com';
/** Separate from earlier runs on the same event store; addresses with an even last part complete. */
const net = `${20 + Math.floor(Math.random() * 60)}.${Math.floor(Math.random() * 256)}`;
const answered = (n: number) => `${net}.${n >> 7}.${(n & 127) * 2}`;
const unfinished = (n: number) => `${net}.${n >> 7}.${(n & 127) * 2 + 1}`;

describeOnStores('two api and two worker processes', (env) => {
  let database: TestDatabase;
  let provider: TestProvider;
  let nodes: readonly [Service, Service];
  let workers: Service[];

  beforeAll(async () => {
    database = await testDatabase();
    provider = await startProvider((ip, response) => {
      respond(response, Number(ip.split('.').at(-1)) % 2 === 0 ? 200 : 500, COMPANY);
    });
    // Short, because addresses that stay unfinished open the provider's circuit breaker for two such delays.
    const common = { ...env, ...provider.env, RETRY_BASE_SECONDS: '0.2', LOG_LEVEL: 'debug' };
    const start = (role: 'api' | 'workers') => startService({ role, databaseUrl: database.url, env: common });
    workers = await Promise.all([start('workers'), start('workers')]);
    nodes = await Promise.all([start('api'), start('api')]);
  }, 120_000);
  afterAll(async () => {
    await Promise.all([...(nodes ?? []), ...(workers ?? [])].map((service) => service.remove()));
    provider?.close();
    await database?.drop();
  });

  const node = (n: number): Service => nodes[n % 2 === 0 ? 0 : 1];
  const post = (n: number, key: string, ip: string) =>
    node(n).call('POST', '/v1/lookup', { key, body: { ip } });
  const get = (n: number, key: string, ip: string) => node(n).call('GET', `/v1/lookup?ip=${ip}`, { key });
  const roomy = { requests_per_second: 100_000 };

  it('show on one node at once what was submitted on the other', async () => {
    const { api_key: key } = await nodes[0].newKey(roomy);
    for (let n = 0; n < 20; n += 1) {
      expect((await post(n, key, unfinished(n))).status).toBe(202);
      expect((await get(n + 1, key, unfinished(n))).status).toBe(202);
    }
  });

  it('report on each node the usage of both, including the last answers', async () => {
    const { api_key: key } = await nodes[0].newKey(roomy);
    for (let round = 1; round <= 5; round += 1) {
      await Promise.all(Array.from({ length: 40 }, (_, n) => get(n, key, unfinished(500 + n))));
      const usage = await node(round).call('GET', '/v1/usage', { key });
      expect(usage.body.totals.requests).toBe(round * 40);
    }
  });

  it("hold a key's rate over both within a tenth", async () => {
    const limit = 30;
    const { api_key: key } = await nodes[0].newKey({ requests_per_second: limit });
    const admitted: { sent: number; received: number }[] = [];
    /** Tenths of a second in which the rate refused requests, so that the callers and the machine were not what held it back. */
    const saturated = new Set<number>();
    const tenthOf = (ms: number): number => Math.floor(ms / 100);
    const end = performance.now() + 15_000;
    const caller = async (n: number): Promise<void> => {
      while (saturated.size < 30 && performance.now() < end) {
        const sent = performance.now();
        const { status } = await get(n, key, unfinished(900));
        if (status === 429) saturated.add(tenthOf(performance.now()));
        else admitted.push({ sent, received: performance.now() });
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => caller(n)));
    // Sent and received within one second, and so surely admitted within it.
    const most = Math.max(
      ...admitted.map(
        ({ sent: from }) => admitted.filter((a) => a.sent >= from && a.received < from + 1_000).length,
      ),
    );
    expect(most).toBeLessThanOrEqual(limit * 1.1);
    expect(saturated.size).toBeGreaterThan(10);
    expect(admitted.length).toBeGreaterThanOrEqual((saturated.size / 10) * limit * 0.9 - 1);
  });

  it.each([
    ['enrichment_limit', 'new_enrichments_per_day', 1_000],
    ['pending_limit', 'pending_enrichments', 1_200],
  ])('admit exactly ten of a hundred concurrent requests when %s is ten', async (code, limit, base) => {
    const { api_key: key } = await nodes[0].newKey({ ...roomy, [limit]: 10 });
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => post(n, key, unfinished(base + n))),
    );
    const kinds = answers.map(({ status, body }) => body.error?.code ?? status);
    expect(kinds.filter((kind) => kind === 202)).toHaveLength(10);
    expect(kinds.filter((kind) => kind === code)).toHaveLength(90);
    const usage = await nodes[1].call('GET', '/v1/usage', { key });
    expect(usage.body.outcomes).toMatchObject({ enqueued: 10, rate_limited: 90 });
    expect(usage.body.enrichment.pending).toBe(10);
  });

  it('refuse a revoked key on both within a second', async () => {
    const { api_key: key, key_id } = await nodes[0].newKey();
    for (const n of [0, 1]) expect((await get(n, key, unfinished(0))).status).toBe(404);
    expect((await workers[0]?.cli('key', 'revoke', key_id))?.code).toBe(0);
    await eventually(
      'both refuse the key',
      async () => [(await get(0, key, unfinished(0))).status, (await get(1, key, unfinished(0))).status],
      (statuses) => statuses.every((status) => status === 401),
      1_000,
    );
  });

  it('share a tracker: created on one, it captures, feeds and reveals on the other until it is disabled', async () => {
    const { api_key: key } = await nodes[0].newKey(roomy);
    const made = await nodes[0].call('POST', '/v1/trackers', {
      key,
      body: { name: 'a site', origins: [PAGE] },
    });
    const tracker_id: string = made.body.id;
    let visitors = 2_000;
    const capture = (n: number) => {
      visitors += 1;
      const headers = { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': answered(visitors) };
      const body = { tracker_id, token: randomUUID(), visit_id: randomUUID() };
      return node(n).call('POST', '/tracking/collect', { headers, body });
    };
    expect((await capture(1)).status).toBe(204);
    expect((await capture(0)).status).toBe(204);
    const feeds = await Promise.all(nodes.map((one) => one.call('GET', '/v1/sessions', { key })));
    const sessions = feeds.map(({ body }) => body.sessions);
    expect(sessions[0]).toHaveLength(2);
    expect(sessions[1]).toEqual(sessions[0]);

    const headers = { 'idempotency-key': randomUUID() };
    const path = `/v1/sessions/${sessions[0][0].session_id}/reveal`;
    const [first, second] = await Promise.all(nodes.map((one) => one.call('POST', path, { key, headers })));
    expect(second?.body.reveal_id).toBe(first?.body.reveal_id);
    const receipt = await eventually(
      'the reveal is complete',
      () => nodes[1].call('GET', first?.body.status_url, { key }),
      ({ status }) => status === 200,
    );
    expect(receipt.body).toMatchObject({ billable_units: 1, result: { company: { name: 'Provided' } } });
    const again = await nodes[0].call('GET', first?.body.status_url, { key });
    expect({ ...again.body, request_id: '' }).toEqual({ ...receipt.body, request_id: '' });

    expect((await nodes[0].call('DELETE', `/v1/trackers/${tracker_id}`, { key })).status).toBe(200);
    expect((await capture(0)).status).toBe(403);
    await eventually(
      'the other node captures no more',
      () => capture(1),
      ({ status }) => status === 403,
      1_000,
    );
  });

  it('continue within five seconds when the leading worker is killed', async () => {
    const { api_key: key } = await nodes[0].newKey(roomy);
    const lastLease = ({ stderr }: Service): number =>
      Number([...stderr().matchAll(/"group":"lookups","lease":"(\d+)","msg":"leading"/g)].at(-1)?.[1] ?? 0);
    const [leader] = workers.toSorted((a, b) => lastLease(b) - lastLease(a));
    await leader?.kill();
    const killed = performance.now();
    let n = 1_500;
    await eventually(
      'a new lookup is known on both nodes',
      async () => {
        n += 1;
        await post(n, key, answered(n));
        return [(await get(0, key, answered(n))).status, (await get(1, key, answered(n))).status];
      },
      (statuses) => statuses.every((status) => status === 202 || status === 200),
      5_000,
    );
    expect(performance.now() - killed).toBeLessThan(5_000);
    await eventually('it completes', async () => (await get(0, key, answered(n))).status === 200);
  });
});
