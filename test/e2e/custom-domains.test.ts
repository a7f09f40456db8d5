import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { startTestDns, type TestDns } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { type Service, startService } from '../support/service.ts';
import { describeOnStores } from '../support/stores.ts';

const PAGE = 'https://www.example.com';
const SERVICE = 'doorplate.example';
/** A change applies in every process within a second; the rest is for a busy machine. */
const SOON_MS = 3_000;

describeOnStores('custom domains over processes', (env) => {
  let database: TestDatabase;
  let dns: TestDns;
  let workers: Service;
  let nodes: readonly [Service, Service];
  let key: string;

  beforeAll(async () => {
    database = await testDatabase();
    dns = await startTestDns();
    const common = { ...env, PUBLIC_URL: `https://${SERVICE}`, DNS_SERVERS: dns.address };
    const start = (role: 'api' | 'workers') => startService({ role, databaseUrl: database.url, env: common });
    workers = await start('workers');
    nodes = await Promise.all([start('api'), start('api')]);
    key = (await nodes[0].newKey({ requests_per_second: 100_000 })).api_key;
  }, 120_000);
  afterAll(async () => {
    await Promise.all([...(nodes ?? []), workers].map((service) => service?.remove()));
    dns?.close();
    await database?.drop();
  });

  const makeTracker = async (): Promise<string> => {
    const body = { name: 'a site', origins: [PAGE] };
    const made = await nodes[0].call('POST', '/v1/trackers', { key, body });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return made.body.id;
  };
  const tlsAllowed = async ({ env: { OPS_PORT } }: Service, hostname: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${OPS_PORT}/tls-allowed?domain=${hostname}`)).status;
  /** A visit, sent to a node as the edge forwards it. */
  const visit = (node: Service, host: string, tracker_id: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { host, origin: PAGE, 'content-type': 'text/plain', 'x-forwarded-for': '8.8.8.8' };
      const asked = request(`${node.url}/tracking/collect`, { method: 'POST', headers }, (answer) => {
        answer.resume();
        answer.on('end', () => resolve(answer.statusCode));
      });
      asked.on('error', reject);
      asked.end(JSON.stringify({ tracker_id, token: randomUUID(), visit_id: randomUUID() }));
    });
  const onAll = (what: string, ask: (node: Service) => Promise<unknown>, expected: unknown) =>
    Promise.all(
      nodes.map((node) =>
        eventually(
          what,
          () => ask(node),
          (got) => got === expected,
          SOON_MS,
        ),
      ),
    );

  it('are claimed on one node by one of two partners, activated by a worker, and collect on every node', async () => {
    const hostname = 'visits.example.com';
    dns.says(hostname, ['alias.example.net']);
    dns.says('alias.example.net', [`${SERVICE}.`]);
    const trackers = [await makeTracker(), await makeTracker()] as const;
    const claims = await Promise.all(
      trackers.map((tracker, n) =>
        (nodes[n] as Service).call('POST', `/v1/trackers/${tracker}/domains`, { key, body: { hostname } }),
      ),
    );
    expect(claims.map(({ status }) => status).sort()).toEqual([201, 409]);
    const winner = claims.findIndex(({ status }) => status === 201);
    const tracker = trackers[winner] ?? '';
    const at = `/v1/trackers/${tracker}/domains/${claims[winner]?.body.id}`;
    // Read on the other node.
    const other = nodes[1 - winner] as Service;
    expect((await other.call('GET', at, { key })).body.cname_target).toBe(SERVICE);
    const active = await eventually(
      'it is active',
      async () => (await other.call('GET', at, { key })).body,
      ({ status }) => status === 'active',
    );
    expect(active.snippet).toContain(`src="https://${hostname}/tracking/a.js?tracker_id=${tracker}"`);
    await onAll('it collects', (node) => visit(node, hostname, tracker), 204);
    await onAll('it may have a certificate', (node) => tlsAllowed(node, hostname), 200);
    expect(await tlsAllowed(workers, hostname)).toBe(200);
    expect(await tlsAllowed(workers, SERVICE)).toBe(200);
    expect(await tlsAllowed(workers, 'other.example.com')).toBe(404);
    expect(await visit(nodes[0], hostname, trackers[1 - winner] ?? '')).toBe(403);

    expect((await nodes[0].call('DELETE', at, { key })).status).toBe(200);
    await onAll('it no longer collects', (node) => visit(node, hostname, tracker), 403);
    await onAll('nor has it a certificate', (node) => tlsAllowed(node, hostname), 404);
  });

  it('continue after a worker is killed, and end with their tracker', async () => {
    const hostname = 'late.example.com';
    const tracker = await makeTracker();
    await workers.kill();
    const path = `/v1/trackers/${tracker}/domains`;
    const claimed = await nodes[0].call('POST', path, { key, body: { hostname } });
    expect(claimed.status).toBe(201);
    dns.says(hostname, [SERVICE]);
    await workers.restart();
    await eventually(
      'it is active',
      async () => (await nodes[1].call('GET', `${path}/${claimed.body.id}`, { key })).body.status,
      (status) => status === 'active',
      20_000,
    );
    await nodes[0].call('POST', `/v1/trackers/${tracker}/delete`, { key });
    await onAll('it no longer collects', (node) => visit(node, hostname, tracker), 410);
    await onAll('nor has it a certificate', (node) => tlsAllowed(node, hostname), 404);
    const next = await makeTracker();
    await eventually(
      'its name is free',
      () => nodes[1].call('POST', `/v1/trackers/${next}/domains`, { key, body: { hostname } }),
      ({ status }) => status === 201,
    );
  }, 60_000);

  it('cause a loud warning when other DNS servers are configured', () => {
    expect(workers.stderr()).toContain('DNS_SERVERS is set: it is for development and tests alone');
  });
});
