import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { postmasterOf } from '../../cli/installation/data-folder.ts';
import type { Running } from '../../cli/installation/serving.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { doorplate, startDoorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { reap } from '../support/reaped.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

const DAY = 86_400_000;
/** Beside other tests; `.ci/run` holds it to a minute where it is alone. */
const READY_WITHIN_MS = 240_000;
/** Settings that would break the demo, or take it to other machines. */
const SETTINGS = {
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
  EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
  MASTER_KEY: 'too short',
  DATA_DIR: '/nowhere',
  HOST: '0.0.0.0',
  ENRICHMENT_PROVIDERS: 'http',
  ENRICHMENT_HTTP_URL: 'http://127.0.0.1:1/{ip}',
  OPERATOR_WEBHOOK_URL: 'http://127.0.0.1:1/',
  PGOPTIONS: '-c no_such_setting=1',
};

describe('doorplate demo', () => {
  const parent = makeTestFolder();
  const folder = join(parent, '.doorplate-demo');
  let demo: Running;
  let runtime: Runtime;
  let events: RecordedEvent[];

  const shown = (name: string): string =>
    new RegExp(`^ +${name} +(\\S+)`, 'm').exec(demo.stdout())?.[1] ?? `no ${name} in ${demo.stdout()}`;
  const inFolder = (...args: string[]) => doorplate(args, { DATA_DIR: folder });
  const demoIn = async (cwd: string, ...args: string[]) => {
    const running = startDoorplate(['demo', ...args], {}, { cwd });
    return { code: await running.ended, stdout: running.stdout(), stderr: running.stderr() };
  };
  const typesOf = (...types: string[]) => events.filter(({ type }) => types.includes(type));

  beforeAll(async () => {
    reap({ folder });
    demo = startDoorplate(['demo'], SETTINGS, { cwd: parent });
    const ready = () => demo.stdout().includes('The demo is ready') || demo.child.exitCode !== null;
    await eventually('the demo is ready', ready, Boolean, READY_WITHIN_MS, 100);
    expect(demo.stderr()).toBe('');
    const log = createLogger({ level: 'error', destination: 'stderr' });
    runtime = await openRuntime(loadConfig({ DATA_DIR: folder }), log, 'join');
    events = await wholeLog(runtime);
  }, READY_WITHIN_MS + 10_000);
  afterAll(async () => {
    await runtime?.close();
    demo.child.kill('SIGKILL');
  });

  it('ignores the settings of the environment and says so', () => {
    const [line] = demo.stdout().split('\n');
    expect(line?.split(': ')[1]?.split(', ').toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
    expect(shown('dashboard')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard$/);
  });

  it('has 4,000 visits of 29 days, told in the order of one clock that ends now', () => {
    expect(typesOf('sessions.SessionCreated.v1', 'sessions.SessionVisited.v1')).toHaveLength(4_000);
    const times = events.map(({ metadata }) => Date.parse(metadata.at));
    expect(Math.round((Date.now() - (times[0] ?? 0)) / DAY)).toBe(29);
    let latest = 0;
    for (const time of times) {
      // Visits of an hour are captured side by side.
      expect(time).toBeGreaterThan(latest - 65 * 60_000);
      latest = Math.max(latest, time);
    }
    expect(latest).toBeLessThanOrEqual(Date.now());
  });

  it('has recorded attempts of all past deliveries, failed ones from two hours, and sends nothing for them', async () => {
    const { rows } = await runtime.pool.query<{ state: string; next_attempt_at: Date; attempts: number }>(
      'select state, next_attempt_at, attempts from read.webhook_delivery',
    );
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.filter(({ attempts }) => attempts === 0)).toEqual([]);
    const pending = rows.filter(({ state }) => state === 'pending');
    for (const { next_attempt_at } of pending)
      expect(next_attempt_at.getTime()).toBeGreaterThan(Date.now() + 15 * 60_000);
    const failed = typesOf('webhooks.DeliveryAttempted.v1').flatMap(({ data }) => {
      const { error, started_at } = data as { error: string | null; started_at: string };
      return error === null ? [] : [Date.parse(started_at)];
    });
    expect(failed.length).toBeGreaterThan(20);
    const lasted = Math.max(...failed) - Math.min(...failed);
    expect(lasted).toBeGreaterThan(1.5 * 3_600_000);
    expect(lasted).toBeLessThan(2 * 3_600_000);
  });

  it('passes the audit of its ledger and a rebuild of all read models', async () => {
    const audit = await inFolder('audit', 'billing', '--partner', 'Fernhill Software', '--json');
    expect(audit.code, audit.stderr).toBe(0);
    expect(JSON.parse(audit.stdout)).toMatchObject({ differences: [] });
    expect(JSON.parse(audit.stdout).units).toBeGreaterThan(100);
    const rebuilt = await inFolder('projection', 'rebuild', '--all');
    expect(rebuilt.code, rebuilt.stderr).toBe(0);
  });

  it('lets its user log in, and says Demo on each page', async () => {
    const service = shown('dashboard').replace('/dashboard', '');
    const login = await fetch(`${service}/dashboard/login`, {
      method: 'POST',
      body: new URLSearchParams({ name: shown('login'), password: shown('password') }),
      redirect: 'manual',
    });
    const cookie = login.headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ');
    for (const path of [
      '/dashboard/login',
      '/dashboard',
      '/dashboard/companies',
      '/dashboard/none',
      '/docs',
    ]) {
      const page = await (await fetch(`${service}${path}`, { headers: { cookie } })).text();
      expect(page, path).toContain('<title>Demo · ');
      expect(page, path).toContain('are made up. Nothing leaves this machine.');
    }
    const home = await (await fetch(`${service}/dashboard`, { headers: { cookie } })).text();
    expect(home).toContain('Fernhill Software');
  });

  it("shows a visit of its customer's page as one from a made-up company", async () => {
    const site = shown('a website');
    const page = await (await fetch(`${site}/pricing`)).text();
    const [, script = '', trackerId] = /src="([^"]+)a\.js\?tracker_id=([^"]+)"/.exec(page) ?? [];
    expect((await fetch(`${site}${script}a.js?tracker_id=${trackerId}`)).status).toBe(200);
    const visit = { tracker_id: trackerId, token: randomUUID(), visit_id: randomUUID() };
    const headers = { origin: site, 'content-type': 'text/plain' };
    const sent = { method: 'POST', headers, body: JSON.stringify(visit) };
    expect((await fetch(`${site}${script}collect`, sent)).status).toBe(204);
    const created = (await wholeLog(runtime)).findLast(({ type }) => type === 'sessions.SessionCreated.v1');
    expect(created?.data).toMatchObject({
      tracker_id: trackerId,
      visitor_country: expect.stringMatching(/^[A-Z]{2}$/),
    });
    // Its webhook goes to the local receiver.
    const attempted = () =>
      runtime.pool.query(
        `select http_status from read.webhook_delivery where created_at > now() - interval '1 minute' and state = 'delivered'`,
      );
    await eventually('it is delivered', attempted, ({ rowCount }) => rowCount === 1);
  });

  it('refuses to start where it runs', async () => {
    const second = await demoIn(parent);
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(shown('dashboard')) });
  });

  it('is stopped and removed by --remove', async () => {
    await runtime.close();
    expect(await demoIn(parent, '--remove')).toMatchObject({ code: 0 });
    expect(await demo.ended).toBe(0);
    expect(postmasterOf(folder)).toBeNull();
    expect(existsSync(folder)).toBe(false);
  });
});

async function wholeLog({ store }: Pick<Runtime, 'store'>): Promise<RecordedEvent[]> {
  const reading = new AbortController();
  const events: RecordedEvent[] = [];
  const head = (await store.head()) ?? 0n;
  for await (const batch of store.follow({ after: null, includeExpired: true, signal: reading.signal })) {
    events.push(...batch.events);
    if (batch.position >= head) reading.abort();
  }
  return events;
}

describe('doorplate demo --remove', () => {
  it('removes a demo that is not ready yet', async () => {
    const cwd = makeTestFolder();
    reap({ folder: join(cwd, '.doorplate-demo') });
    const writing = startDoorplate(['demo'], {}, { cwd });
    await eventually('it has begun', () => writing.stdout().includes('Writing a month'), Boolean, 30_000, 50);
    const removing = startDoorplate(['demo', '--remove'], {}, { cwd });
    expect([await removing.ended, removing.stderr()]).toEqual([0, '']);
    await writing.ended;
    expect(existsSync(join(cwd, '.doorplate-demo'))).toBe(false);
  });
});
