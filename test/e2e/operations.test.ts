/** The faults that an operator meets, one by one, each named by `doorplate status` or `doorplate doctor`. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import { openClient } from '../../platform/postgres/pool.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database.ts';
import { doorplateHere, type Environment } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';
import { type Service, startService } from '../support/service.ts';

let database: TestDatabase;
let service: Service;
let proxyUrl: string;
let receiver: Receiver;
const proxy = createServer((incoming, outgoing) => {
  const headers = { ...incoming.headers, 'x-forwarded-for': incoming.socket.remoteAddress };
  const { method, url: path } = incoming;
  const asked = request(service.url + path, { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  incoming.pipe(asked);
});

beforeAll(async () => {
  database = await testDatabase();
  proxyUrl = await listening(proxy);
  receiver = await startReceiver();
  const env = {
    PUBLIC_URL: proxyUrl,
    ENRICHMENT_PROVIDERS: 'http',
    ENRICHMENT_HTTP_URL: `http://127.0.0.1:${await freePort()}/{ip}`,
    OPERATOR_WEBHOOK_URL: `http://127.0.0.1:${receiver.port}/alerts`,
    OPERATOR_WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 5).toString('base64')}`,
    OPERATOR_WEBHOOK_ALLOW_PRIVATE: '1',
  };
  service = await startService({ databaseUrl: database.url, env });
});
afterAll(async () => {
  proxy.close();
  await receiver.close();
  await service.remove();
  await database.drop();
});

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a server that is not Doorplate. */
function startOther(status: number): Promise<string> {
  const other = createServer((_request, response) => response.writeHead(status).end('hello'));
  onTestFinished(() => void other.close());
  return listening(other);
}

async function status(env: Environment = {}) {
  const { code, stdout } = await doorplateHere(['status', '--json'], { ...service.env, ...env });
  return { code, ...JSON.parse(stdout) };
}
async function doctor(env: Environment = {}) {
  const { code, stdout } = await doorplateHere(['doctor', '--json'], { ...service.env, ...env });
  const { ok, checks } = JSON.parse(stdout) as {
    ok: boolean;
    checks: { name: string; ok: boolean; detail: string; fix: string }[];
  };
  return { code, ok, checks, failed: checks.filter((check) => !check.ok) };
}
/** Polls the database, because each status costs a second. */
const until = (what: string, sql: string) =>
  eventually(
    what,
    () => withClient((client) => client.query(sql)),
    ({ rowCount }) => rowCount !== 0,
  );
const withClient = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = await openClient(database.url, 'test');
  return work(client).finally(() => client.end());
};
const run = async (sql: string, values: unknown[] = []): Promise<void> => {
  await withClient((client) => client.query(sql, values));
};
/** Waits for the next reading of the conditions, 15 seconds at most. */
const metricOf = async (code: string, severity: string): Promise<number> => {
  const metric = new RegExp(
    `^doorplate_condition\\{code="${code}",severity="${severity}"\\} ([1-9]\\d*)$`,
    'm',
  );
  const text = await eventually(
    `the metric of ${code}`,
    async () => (await fetch(`http://127.0.0.1:${service.env.OPS_PORT}/metrics`)).text(),
    (metrics) => metric.test(metrics),
    20_000,
  );
  return Number(metric.exec(text)?.[1]);
};
const problem = (code: string, what: RegExp) => ({
  code,
  what: expect.stringMatching(what),
  runbook: expect.stringMatching(/^docs\/runbook\.md#/),
});

describe('a healthy installation', () => {
  it('is healthy by status, which waits for it, and by doctor', async () => {
    const waited = await service.cli('status', '--exit-when-healthy', '--json');
    expect(waited.code).toBe(0);
    expect(JSON.parse(waited.stdout)).toMatchObject({
      healthy: true,
      stores: [{ kind: 'postgresql', latency_ms: expect.any(Number) }],
      processes: [{ role: 'all', leads: ['lookups', 'signals', 'upkeep', 'visits', 'webhooks'] }],
      queues: { due: 0, oldest_due_at: null, breakers_open: 0 },
      problems: [],
    });
    expect(await doctor()).toMatchObject({ code: 0, ok: true, failed: [] });
    expect((await service.cli('status')).stdout).toMatch(/^Doorplate .+?: healthy, .+\nnone\n/s);
    expect((await service.cli('upgrade', 'check')).stdout).toContain('would run no migration');
  });
});

describe('status names', () => {
  it('a store that is away', async () => {
    const away = `postgresql://doorplate@127.0.0.1:${await freePort()}/doorplate`;
    expect(await status({ DATABASE_URL: away })).toMatchObject({
      code: 1,
      healthy: false,
      problems: [problem('store_unreachable', /DATABASE_URL: .+ECONNREFUSED/)],
    });
  });

  it('a store that accepts no writes', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await run(`alter database ${name} set default_transaction_read_only = on`);
    onTestFinished(() =>
      run(`set transaction read write; alter database ${name} reset default_transaction_read_only`),
    );
    expect((await status()).problems).toContainEqual(
      expect.objectContaining(problem('store_read_only', /no writes/)),
    );
    expect((await doctor()).failed).toMatchObject([{ name: 'postgresql' }]);
  });

  it('a process whose clock is an hour ahead', async () => {
    const clock = { now: () => Date.now() + 3_600_000 };
    const log = createLogger({ level: 'silent' });
    const leases = await enterLeases({ url: database.url, role: 'api', clock, log });
    onTestFinished(() => leases.stop());
    expect((await status()).problems).toMatchObject([
      problem('clock_wrong', /\(api\) is (1 h|59 min).+ ahead/),
    ]);
    expect((await doctor()).failed).toMatchObject([{ name: 'clock' }]);
  });

  it('another release beside it', async () => {
    const id = randomUUID();
    const session = await openClient(database.url, `doorplate heartbeat ${id}`);
    onTestFinished(() => session.end());
    await run(
      `insert into work.process (process_id, role, beats, seen_at, release) values ($1, 'api', 1, $2, '0.1.0')`,
      [id, new Date()],
    );
    expect((await status()).problems).toMatchObject([problem('releases_differ', /runs version 0\.1\.0/)]);
  });

  it('an endpoint whose breaker is open', async () => {
    const id = randomUUID();
    await run(
      `with health as (
         insert into read.webhook_health (webhook_id, partner_id, pending, failures_in_row, still_ms) values ($1, $1, 3, 10, 0))
       insert into read.webhook_endpoint (webhook_id, partner_id, name, url, events, enabled, secret, created_at, updated_at, last_revision, last_position)
       values ($1, $1, 'CRM', 'https://crm.example/', '{}', true, '{}', $2, $2, 0, 0)`,
      [id, new Date()],
    );
    onTestFinished(() => run('delete from read.webhook_health where webhook_id = $1', [id]));
    onTestFinished(() => run('delete from read.webhook_endpoint where webhook_id = $1', [id]));
    expect((await status()).problems).toMatchObject([
      problem('endpoint_held', /“CRM” .+ 10 failures in a row/),
    ]);
    expect(await metricOf('endpoint_held', 'warning')).toBe(1);
  });

  it('a provider that is down', async () => {
    const key = service.demoKey();
    expect((await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.8.8' } })).status).toBe(202);
    await until('the failure is counted', 'select from work.provider_day where last_failed_at is not null');
    const { problems } = await status();
    expect(problems).toMatchObject([problem('provider_failing', /provider http fails/)]);
  });

  it('a projection that an event has stopped', async () => {
    const store = createPostgresEventStore({ url: database.url, now: Date.now });
    onTestFinished(() => store.close());
    const metadata = {
      $correlationId: randomUUID(),
      $causationId: randomUUID(),
      at: new Date().toISOString(),
    };
    await store.append(`trackers-${randomUUID()}`, 'no_stream', [
      { id: randomUUID(), type: 'trackers.TrackerCreated.v1', data: {}, metadata },
    ]);
    await until(
      'the projection has stopped',
      `select from read.projection where name = 'trackers' and stopped_by is not null`,
    );
    const { healthy, problems } = await status();
    expect(healthy).toBe(false);
    expect(problems).toContainEqual(
      expect.objectContaining(
        problem('consumer_stopped', /projection trackers stopped by an event: trackers.TrackerCreated/),
      ),
    );
    // The event stops other projections too, each of which is told.
    const ofTrackers = await eventually(
      "the operator's webhook has told",
      () => receiver.requests.find(({ body }) => JSON.parse(body.toString()).data.name === 'trackers'),
      (request) => request !== undefined,
      30_000,
    );
    const { headers, body } = ofTrackers as Received;
    const told = new Webhook(service.env.OPERATOR_WEBHOOK_SECRET ?? '').verify(
      body.toString(),
      headers as never,
    );
    expect(told).toMatchObject({
      id: headers['webhook-id'],
      type: 'operator.consumer_stopped',
      schema_version: 1,
      data: { kind: 'projection', name: 'trackers' },
    });
    await until(
      'every alert is delivered',
      'select from work.operator_alert having bool_and(delivered_at is not null)',
    );
    expect((await status()).operator_webhook).toMatchObject({
      configured: true,
      pending: 0,
      failing_since: null,
    });
  });
});

describe('doctor names', () => {
  it('a wrong master key', async () => {
    const { failed } = await doctor({ MASTER_KEY: Buffer.alloc(32, 9).toString('base64') });
    expect(failed).toMatchObject([
      { name: 'master key', fix: expect.stringContaining('put back the last key') },
    ]);
  });

  it('a PUBLIC_URL that leads elsewhere, and one that leads nowhere', async () => {
    const elsewhere = await startOther(404);
    for (const PUBLIC_URL of [elsewhere, `http://127.0.0.1:${await freePort()}`]) {
      expect((await doctor({ PUBLIC_URL })).failed).toMatchObject([
        { name: 'proxy', detail: expect.stringContaining(PUBLIC_URL) },
      ]);
    }
  });

  it('no PUBLIC_URL that only the host of a container can call', async () => {
    const PUBLIC_URL = `http://localhost:${await freePort()}`;
    const { checks, failed } = await doctor({ PUBLIC_URL, HOST: '0.0.0.0' });
    expect(failed).toEqual([]);
    expect(checks.find(({ name }) => name === 'proxy')?.detail).toContain('on the host of this container');
  });

  it('a port that another program uses', async () => {
    const { port } = new URL(await startOther(200));
    const { failed } = await doctor({ PORT: port });
    expect(failed).toMatchObject([
      { name: 'ports', detail: expect.stringMatching(/^PORT \d+ on 127\.0\.0\.1 is used/) },
    ]);
  });

  it('a port that another installation uses, and the process of its own installation that serves elsewhere', async () => {
    const database = await testDatabase();
    onTestFinished(() => database.drop());
    const other = await startService({ databaseUrl: database.url });
    onTestFinished(() => other.remove());
    const { PORT = '', OPS_PORT = '' } = other.env;
    const { checks, failed } = await doctor({ PORT, OPS_PORT });
    expect(failed).toMatchObject([
      {
        name: 'ports',
        detail: `PORT ${PORT} on 127.0.0.1 is used by another process of Doorplate; OPS_PORT ${OPS_PORT} on 127.0.0.1 is used by another process of Doorplate`,
        fix: expect.stringContaining('run doctor with the PORT and OPS_PORT of the process'),
      },
    ]);
    expect(checks.find(({ name }) => name === 'proxy')).toMatchObject({
      ok: true,
      detail: expect.stringMatching(/^skipped: process \S+ \(all\) serves the API, but not at OPS_PORT/),
    });
  });

  it('nothing beside a process of role workers, which serves no API and leaves PORT to others', async () => {
    const workers = await startService({
      role: 'workers',
      databaseUrl: database.url,
      env: { PUBLIC_URL: `http://127.0.0.1:${await freePort()}` },
    });
    onTestFinished(() => workers.remove());
    const { PORT = '' } = service.env;
    const { checks, failed } = await doctor({ ...workers.env, PORT });
    expect(failed).toEqual([]);
    expect(checks.filter(({ name }) => ['ports', 'proxy'].includes(name))).toMatchObject([
      { detail: expect.stringContaining(`PORT ${PORT}: not used by a process of role workers`) },
      { detail: expect.stringContaining('the process here has the role workers') },
    ]);
  });

  it('every wrong variable, with its right form', async () => {
    const { failed, code } = await doctor({ PUBLIC_URL: 'example.com', TRUSTED_PROXIES: 'all' });
    expect(code).toBe(1);
    expect(failed).toMatchObject([
      { name: 'configuration', fix: 'PUBLIC_URL=https://doorplate.example.com' },
      { name: 'configuration', fix: expect.stringContaining('10.0.0.0/8') },
    ]);
  });

  it('TRUSTED_PROXIES without the proxy', async () => {
    const narrow = await startService({
      role: 'api',
      databaseUrl: database.url,
      env: { PUBLIC_URL: proxyUrl, TRUSTED_PROXIES: '10.0.0.0/8' },
    });
    onTestFinished(() => narrow.remove());
    const original = service;
    service = narrow;
    onTestFinished(() => {
      service = original;
    });
    expect((await doctor()).failed).toMatchObject([
      {
        name: 'proxy',
        detail: expect.stringContaining('TRUSTED_PROXIES is too narrow'),
        fix: 'add 127.0.0.1 to TRUSTED_PROXIES',
      },
    ]);
  });
});

describe('a command that finds nothing', () => {
  it('says where it looked, and makes neither a folder nor a table', async () => {
    const env = { DATA_DIR: '/nowhere/at/all' };
    const made = await doorplateHere(['user', 'create', '--partner', 'demo', 'Ada'], env);
    expect(made).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no server and no data in /nowhere/at/all (DATA_DIR)'),
    });
    const empty = await emptyDatabase();
    onTestFinished(() => empty.drop());
    const listed = await doorplateHere(['partner', 'list'], { ...service.env, DATABASE_URL: empty.url });
    expect(listed).toMatchObject({ code: 1, stderr: expect.stringContaining('no data in DATABASE_URL') });
    const client = await openClient(empty.url, 'test');
    const { rowCount } = await client.query(
      `select from pg_class where relnamespace = 'public'::regnamespace`,
    );
    await client.end();
    expect(rowCount).toBe(0);
  });
});
