import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { eventually } from '../support/eventually.ts';
import { reap } from '../support/reaped.ts';
import { type Service, startService } from '../support/service.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

const PAGE = 'https://www.example.com';
const VISITOR = '8.8.8.8';

let service: Service;
let second: Service | undefined;
const backup = makeTestFolder();
reap({ folder: backup });
beforeAll(async () => {
  service = await startService();
}, 60_000);
afterAll(async () => {
  await second?.remove();
  await service.remove();
  await removeDataFolder(backup);
});

it('a copy of the data folder, made by the steps of docs/backup-and-upgrade.md, contains the whole product', async () => {
  const key = service.demoKey();
  const tracker = await service.call('POST', '/v1/trackers', {
    key,
    body: { name: 'a site', origins: [PAGE] },
  });
  await service.call('POST', '/tracking/collect', {
    headers: { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': VISITOR },
    body: {
      tracker_id: tracker.body.id,
      token: randomUUID(),
      visit_id: randomUUID(),
      custom: { campaign: 'spring' },
    },
  });
  const sessions = async (of: Service) => (await of.call('GET', '/v1/sessions', { key })).body.sessions;
  const shown = await eventually(
    'the session is shown',
    () => sessions(service),
    (some) => some.length === 1,
  );
  expect(await service.terminate()).toBe(0);

  rmSync(backup, { recursive: true });
  await promisify(execFile)('cp', ['--archive', service.dataDir, backup]);
  second = await startService({ env: { DATA_DIR: backup } });
  expect(await sessions(second)).toEqual(shown);
  expect(shown[0].custom).toEqual({ campaign: 'spring' });
  expect((await second.cli('projection', 'rebuild', '--all')).code).toBe(0);
  expect(await sessions(second)).toEqual(shown);
  expect(await second.terminate()).toBe(0);
}, 120_000);
