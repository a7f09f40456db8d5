import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postmasterOf } from '../../cli/installation/data-folder.ts';
import { doorplate, doorplateHere } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { type Service, startService } from '../support/service.ts';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.remove());

/** Runs the command beside the service and returns the output of `--json`. */
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await service.cli(...args, '--json');
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

const refused = async (...args: string[]) => {
  const { code, stdout, stderr } = await service.cli(...args);
  expect(stdout).toBe('');
  return { code, stderr };
};

const statusWith = async (key: string) => (await service.call('GET', '/v1/usage', { key })).status;

describe('doorplate, beside a running server', () => {
  it('creates a partner once', async () => {
    const acme = await json('partner', 'create', 'acme');
    expect(Object.keys(acme)).toEqual(['partner_id', 'name']);
    expect(await refused('partner', 'create', 'acme')).toEqual({
      code: 1,
      stderr: 'doorplate: partner_exists: acme\n',
    });
  });

  it('creates a partner with ceilings and changes only the given ones', async () => {
    const usual = await json('partner', 'create', 'usual');
    expect(await json('partner', 'list')).toContainEqual(
      expect.objectContaining({
        ...usual,
        requests_per_second: 50,
        new_enrichments_per_day: null,
        pending_enrichments: 10_000,
        keys: 100,
        domains: 100,
        company_signals: false,
      }),
    );
    const capped = await json('partner', 'create', 'capped', '--keys', '2', '--new-enrichments-per-day', '9');
    const update = await json('partner', 'update', 'capped', '--company-signals', '--domains', '0');
    expect(update).toMatchObject({
      ...capped,
      keys: 2,
      new_enrichments_per_day: 9,
      company_signals: true,
      domains: 0,
    });
    const free = await json('partner', 'update', capped.partner_id, '--new-enrichments-per-day', 'none');
    expect(free).toMatchObject({ keys: 2, new_enrichments_per_day: null });
    expect(await refused('partner', 'update', 'unknown')).toMatchObject({ code: 1 });
  });

  it('creates a key that works at once, shows it once, and applies changed limits', async () => {
    const { partner_id } = await json('partner', 'create', 'limits');
    const limits = ['--requests-per-second', '7', '--new-enrichments-per-day', '0'];
    const made = await json('key', 'create', '--partner', 'limits', '--name', 'one', ...limits);
    expect(made).toMatchObject({
      partner_id,
      name: 'one',
      requests_per_second: 7,
      pending_enrichments: 10_000,
    });
    expect(await statusWith(made.api_key)).toBe(200);
    expect(JSON.stringify(await json('key', 'list', '--partner', partner_id))).not.toContain(made.api_key);

    const free = ['--new-enrichments-per-day', 'none', '--expires-at', 'never'];
    const changed = await json('key', 'update', made.key_id, ...free);
    expect(changed).toMatchObject({
      requests_per_second: 7,
      new_enrichments_per_day: null,
      expires_at: null,
    });
    const usage = await eventually(
      'the new limits hold',
      () => service.call('GET', '/v1/usage', { key: made.api_key }),
      ({ body }) => body.limits?.new_enrichments_per_day === null,
      1_000,
    );
    expect(usage.body.name).toBe('one');
  });

  it('revokes a key, which is refused within a second', async () => {
    const { api_key, key_id } = await service.newKey();
    expect(await statusWith(api_key)).toBe(200);
    expect((await json('key', 'revoke', key_id)).revoked_at).toMatch(/Z$/);
    await eventually(
      'the key is refused',
      () => statusWith(api_key),
      (status) => status === 401,
      1_000,
    );
    expect((await json('key', 'revoke', key_id)).key_id).toBe(key_id);
    expect(await refused('key', 'update', key_id, '--requests-per-second', '1')).toEqual({
      code: 1,
      stderr: `doorplate: key_revoked: ${key_id}\n`,
    });
  });

  it('prints the saved result of an address with its sources, or that none is saved', async () => {
    const key = service.demoKey();
    await service.call('POST', '/v1/lookup', { key, body: { ip: '8.8.4.4' } });
    const saved = () => service.cli('lookup', '8.8.4.4', '--json');
    const { stdout } = await eventually('the lookup is complete', saved, ({ code }) => code === 0);
    expect(JSON.parse(stdout)).toMatchObject({
      ip: '8.8.4.4',
      match_type: 'company',
      sources: ['directory'],
    });
    expect((await refused('lookup', '9.9.9.10')).stderr).toContain('nothing is saved of 9.9.9.10');
    expect(await refused('lookup', '10.0.0.1')).toEqual({
      code: 1,
      stderr: 'doorplate: invalid_ip: 10.0.0.1\n',
    });
  });

  it('lists the read models and rebuilds them while the service answers', async () => {
    const key = service.demoKey();
    const names = (await json('projection', 'list')).map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['partners', 'lookups', 'usage']));
    const before = await service.call('GET', '/v1/usage', { key });
    expect((await json('projection', 'rebuild', '--all')).rebuilt).toContain('lookups');
    const after = await service.call('GET', '/v1/usage', { key });
    expect(after.body.hourly).toEqual(before.body.hourly);
    await eventually(
      'the read models are current',
      () => json('projection', 'list'),
      (list: { state: string }[]) => list.every(({ state }) => state === 'current'),
    );
    expect((await refused('projection', 'rebuild', 'nothing')).code).toBe(1);
  });

  it.each([
    ['without a command', []],
    ['without a required option', ['key', 'create', '--name', 'n']],
    ['with neither a projection nor --all', ['projection', 'rebuild']],
  ])('exits with 2 %s', async (_how, args) => {
    const { code, stderr } = await service.cli(...args);
    expect(code).toBe(2);
    expect(stderr).not.toBe('');
  });
});

describe('doorplate, without a server', () => {
  it('starts PostgreSQL for itself, keeps its data, and leaves no process running', async () => {
    expect(await service.terminate()).toBe(0);
    const made = await doorplate(['partner', 'create', 'lonely', '--json'], service.env);
    expect(made.code, made.stderr).toBe(0);
    const list = await doorplateHere(['partner', 'list'], service.env);
    expect(list.stdout).toMatch(/^partner_id +name +state +live_keys [^\n]* created_at\n/);
    expect(list.stdout).toMatch(/ lonely +active +0 [^\n]* \d{1,2} \w{3} \d{4}, \d\d:\d\d UTC\n/);
    expect(postmasterOf(service.dataDir)).toBeNull();
  });
});
