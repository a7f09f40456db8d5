import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { NOTE_TELEMETRY, type Service, startService } from '../support/service.ts';

let service: Service;

/** The longest lease of a killed process, with a margin. */
const LEASE_MS = 25_000;

beforeAll(async () => {
  service = await startService({ env: NOTE_TELEMETRY });
});
afterAll(() => service.remove());

const lookup = (ip: string) => service.call('GET', `/v1/lookup?ip=${ip}`, { key: service.demoKey() });

describe('the first start without configuration', () => {
  it('creates the partner demo with a key in demo.env, which only its owner may read', async () => {
    expect(statSync(join(service.dataDir, 'demo.env')).mode & 0o777).toBe(0o600);
    expect(service.demoKey()).toMatch(/^dp_[\w-]{40,}$/);
    const { stdout } = await service.cli('partner', 'list', '--json');
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'demo' }]);
  });

  it('prints an example request with the key', () => {
    expect(service.stdout()).toContain(`curl -sS -X POST ${service.url}/v1/lookup`);
    expect(service.stdout()).toContain(service.demoKey());
  });

  it('shows no warning of Node or of a dependency', () => {
    expect(service.stderr() + service.stdout()).not.toMatch(/\bWarning:/);
  });

  it('keeps the master key readable by its owner only and every key out of the log', () => {
    expect(statSync(join(service.dataDir, 'master.key')).mode & 0o777).toBe(0o600);
    expect(service.stderr()).not.toContain(service.demoKey());
  });

  it('finds a company for the first lookup: 202, then 200', async () => {
    const key = service.demoKey();
    // Of a trace, for which nothing of OpenTelemetry is loaded here.
    const headers = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` };
    const posted = await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.8.8' }, headers });
    expect(posted.status).toBe(202);
    expect(posted.body).toMatchObject({ ip: '8.8.8.8', status: 'pending', attempts: 0 });
    const found = await eventually(
      'the lookup is complete',
      () => service.call('GET', posted.body.status_url, { key }),
      ({ status }) => status === 200,
    );
    expect(found.body).toMatchObject({ ip: '8.8.8.8', status: 'complete', company_found: true });
    expect(found.body.company.name).toContain('Google');
  });

  it('serves its health, its OpenAPI document and its pages without a key', async () => {
    expect((await service.call('GET', '/healthz')).body).toEqual({ status: 'ok' });
    expect((await service.call('GET', '/openapi.json')).body.servers).toEqual([{ url: service.url }]);
    expect((await fetch(`${service.url}/docs`)).status).toBe(200);
  });

  it('tells the rate of the key and what is left of it', async () => {
    const headers = { authorization: `Bearer ${service.demoKey()}` };
    const answer = await fetch(`${service.url}/v1/usage`, { headers });
    expect(answer.headers.get('ratelimit-policy')).toBe('"key";q=50;w=1');
    expect(answer.headers.get('ratelimit')).toMatch(/^"key";r=\d+;t=1$/);
  });
});

describe('the second start', () => {
  it('keeps key, results and usage of the first one', async () => {
    const key = service.demoKey();
    const before = await service.call('GET', '/v1/usage', { key });
    expect(await service.terminate()).toBe(0);
    expect(service.stderr(), 'no exporter is set').not.toContain('opentelemetry');
    await service.restart();
    expect(service.demoKey()).toBe(key);
    expect((await lookup('8.8.8.8')).status).toBe(200);
    const after = await service.call('GET', '/v1/usage', { key });
    expect(after.body.key_id).toBe(before.body.key_id);
    expect(after.body.totals.requests).toBe(before.body.totals.requests + 1);
  });

  it('keeps them after a kill too', async () => {
    const key = service.demoKey();
    const posted = await service.call('POST', '/v1/lookup', { key, body: { ip: '1.1.1.1' } });
    expect(posted.status).toBe(202);
    await service.kill();
    await service.restart();
    await eventually(
      'the lookup is complete, once the lease of a lost attempt is over',
      () => lookup('1.1.1.1'),
      ({ status }) => status === 200,
      LEASE_MS,
    );
  });

  it('is refused while the first one still runs on the same data folder', async () => {
    const { code, stderr } = await doorplate(['serve'], service.env);
    expect(code).toBe(1);
    expect(stderr).toContain(`in use by process ${service.pid}`);
  });
});

describe('a wrong configuration', () => {
  it.each([['EVENTSTORE_URL', 'http://localhost:2113']])(
    'stops the start with one line that names %s=%s',
    async (name, value) => {
      const { code, stdout, stderr } = await doorplate(['serve'], { ...service.env, [name]: value });
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toMatch(new RegExp(`^doorplate: ${name} .+\\n$`));
    },
  );

  it('reports every invalid variable at once', async () => {
    const wrong = {
      PORT: '65536',
      OPS_PORT: '-1',
      PUBLIC_URL: 'doorplate.example',
      DATABASE_URL: 'mysql://localhost/doorplate',
      MASTER_KEY: 'c2hvcnQ=',
      LOG_LEVEL: 'loud',
      TRUSTED_PROXIES: '10.0.0.0/33',
      ENRICHMENT_PROVIDERS: 'oracle',
      ENRICHMENT_INTAKE_PER_MINUTE: '0',
      RETRY_BASE_SECONDS: '0',
    };
    const { code, stderr } = await doorplate(['serve'], wrong);
    expect(code).toBe(2);
    const named = stderr.match(/^doorplate: \w+/gm)?.map((line) => line.replace('doorplate: ', ''));
    expect(named).toEqual(Object.keys(wrong));
  });

  it('reports that the port is in use', async () => {
    const other = { ...service.env, DATA_DIR: `${service.dataDir}/other`, OPS_PORT: '0' };
    const { code, stderr } = await doorplate(['serve'], other);
    expect(code).toBe(1);
    expect(stderr).toContain(`PORT ${service.env.PORT} is in use`);
  });
});
