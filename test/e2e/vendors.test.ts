import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { doorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { makeMmdb } from '../support/mmdb.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

const COMPANY = '81.2.69.142';
const HOME = '81.2.69.200';
const TOKEN = 'a-token-that-no-log-holds';

let service: Service;
let folder: string;
let key: string;
let vendor: Server;
let asked: string[];
beforeAll(async () => {
  folder = makeTestFolder();
  asked = [];
  vendor = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.writeHead(401).end();
  });
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  const directory = join(folder, 'directory.jsonl');
  writeFileSync(
    directory,
    JSON.stringify({ cidr: '81.2.69.0/24', match_type: 'isp', network: { is_isp: true } }),
  );
  service = await startServiceOnDatabase({
    env: { ENRICHMENT_DIRECTORY: directory, RETRY_BASE_SECONDS: '0.05' },
  });
  key = service.demoKey();
});
afterAll(async () => {
  await service?.remove();
  vendor?.close();
  removeDataFolder(folder);
});

const get = async (ip: string) => (await service.call('GET', `/v1/lookup?ip=${ip}`, { key })).body;
const post = (ip: string) => service.call('POST', '/v1/lookup', { key, body: { ip } });
const saved = (ip: string) =>
  eventually(
    `${ip} is saved`,
    () => get(ip),
    (body) => body.refresh_status === 'not_needed',
  );
/** Restarts the service with these variables besides its own. */
const restartWith = async (more: Record<string, string>): Promise<void> => {
  await service.terminate();
  Object.assign(service.env, more);
  await service.restart();
};
const enterprise = (traits: Record<string, string>) => ({ traits });

describe("a vendor's database that is connected to a running installation", () => {
  beforeAll(async () => {
    await post(COMPANY);
    expect(await saved(COMPANY)).toMatchObject({ match_type: 'isp', company_found: false });
    const file = join(folder, 'vendor.mmdb');
    writeFileSync(
      file,
      makeMmdb('GeoIP2-Enterprise', {
        '81.2.69.128/26': enterprise({ user_type: 'business', organization: 'Acme', isp: 'Telia' }),
        '81.2.69.192/26': enterprise({ user_type: 'residential', organization: 'Telia', isp: 'Telia' }),
      }),
    );
    await restartWith({ ENRICHMENT_PROVIDERS: 'directory,maxmind', MAXMIND_FILE: file });
  });

  it("improves yesterday's result on the next POST", async () => {
    await eventually(
      'the result is incomplete',
      () => get(COMPANY),
      (body) => body.refresh_status !== 'not_needed',
    );
    expect((await post(COMPANY)).status).toBe(200);
    expect(await saved(COMPANY)).toMatchObject({ company_found: true, company: { name: 'Acme' } });
  });

  it('is shown by provider try beside the other providers, without saving anything', async () => {
    const { code, stdout, stderr } = await service.cli('provider', 'try', HOME, '--json');
    expect(code, stderr).toBe(0);
    const tried = JSON.parse(stdout);
    expect(tried).toMatchObject({
      ip: HOME,
      providers: [
        { provider: 'directory', outcome: 'isp', counts: true },
        {
          provider: 'maxmind',
          outcome: 'isp',
          counts: true,
          raw: { traits: { user_type: 'residential' } },
          record: { match_type: 'isp', company: { name: 'Telia' } },
        },
      ],
      result: { match_type: 'isp', company: { name: 'Telia' }, sources: ['directory', 'maxmind'] },
    });
    const text = (await service.cli('provider', 'try', HOME)).stdout;
    expect(text).toMatch(/^field +directory +maxmind +result$/m);
    expect(text).toMatch(/^company\.name +- +Telia +Telia$/m);
    expect(text).toContain('"user_type": "residential"');
    expect((await service.call('GET', `/v1/lookup?ip=${HOME}`, { key })).status).toBe(404);
  });

  it('is counted in metrics and in provider list', async () => {
    const ops = `http://127.0.0.1:${service.env.OPS_PORT}/metrics`;
    const metrics = await (await fetch(ops)).text();
    expect(metrics).toContain('doorplate_provider_calls_total{provider="maxmind",outcome="company"} 1');
    expect(metrics).toContain('doorplate_provider_taken_total{provider="maxmind"} 1');
    const list = async () => JSON.parse((await service.cli('provider', 'list', '--json')).stdout);
    const [directory, maxmind] = await eventually(
      'the counts are saved',
      list,
      (rows) => rows[1].calls === 1,
    );
    expect(directory).toMatchObject({ provider: 'directory', kind: 'directory', isp: 1, taken: 0 });
    expect(maxmind).toMatchObject({ provider: 'maxmind', kind: 'file', company: 1, taken: 1, failed: 0 });
  });
});

describe("a vendor's API that refuses the token", () => {
  it('leaves a result incomplete, and its token stands in no log and no error', async () => {
    const url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/{ip}`;
    await restartWith({
      ENRICHMENT_PROVIDERS: 'directory,maxmind,ipinfo',
      IPINFO_TOKEN: TOKEN,
      IPINFO_URL: url,
      IPINFO_REQUESTS_PER_DAY: '3',
      LOG_LEVEL: 'trace',
    });
    await post(HOME);
    await eventually(
      'the rest is saved',
      () => get(HOME),
      (body) => body.match_type === 'isp',
    );
    expect(asked[0]).toBe(`/${HOME} Bearer ${TOKEN}`);
    await eventually(
      'the work is given up',
      () => get(HOME),
      (body) => body.refresh_status === 'not_requested',
    );
    const { code, stdout, stderr } = await service.cli('provider', 'try', HOME);
    expect(code).toBe(1);
    expect(stderr).toContain('doorplate: ipinfo: answered 401\n');
    expect(`${service.stdout()}${service.stderr()}${stdout}${stderr}`).not.toContain(TOKEN);
  });

  it('is asked no more often than its budget of the day allows', async () => {
    await post(HOME);
    await eventually(
      'the budget is used up',
      () => asked.length,
      (count) => count === 3,
    );
    await post(HOME);
    expect((await get(HOME)).refresh_status).toBe('pending');
    expect(asked).toHaveLength(3);
    const { stdout } = await service.cli('provider', 'list', '--json');
    expect(JSON.parse(stdout)[2]).toMatchObject({ provider: 'ipinfo', requests_per_day: 3, budget_left: 0 });
  });
});

describe("a vendor's database that the service does not know", () => {
  it('stops the start with what was found in it', async () => {
    const file = join(folder, 'cafes.mmdb');
    writeFileSync(file, makeMmdb('Acme-Cafes', { '1.0.0.0/8': { cafe: 'Blue' } }));
    await service.terminate();
    Object.assign(service.env, { ENRICHMENT_PROVIDERS: 'cafes', CAFES_FILE: file });
    const { code, stderr } = await doorplate(['serve'], service.env);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `doorplate: CAFES_FILE ${file}: is a database of the type 'Acme-Cafes' with the fields cafe, for which`,
    );
  });
});
