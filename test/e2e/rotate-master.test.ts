import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyFileIn } from '../../platform/crypto/master-key.ts';
import { startDoorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { type Service, startService } from '../support/service.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
}, 60_000);
afterAll(() => service.remove());

const keys = () => readFileSync(keyFileIn(service.dataDir), 'utf8').trimEnd().split('\n');
const COMMAND = ['keys', 'rotate-master', '--json'];
const webhook = { name: 'receiver', url: 'https://hooks.example.com/', events: ['session.created'] };

describe('doorplate keys rotate-master', () => {
  it('changes the key under a running server, also when it is killed and run again', async () => {
    const key = service.demoKey();
    const create = () => service.call('POST', '/v1/webhooks', { key, body: webhook });
    expect((await create()).status).toBe(201);
    const [old] = keys();

    const killed = startDoorplate(COMMAND, service.env);
    await eventually('the change has begun', () => keys().length === 2, Boolean, 30_000);
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect((await create()).status).toBe(201);

    const { code, stdout, stderr } = await service.cli(...COMMAND);
    expect(code, stderr).toBe(0);
    expect(Object.keys(JSON.parse(stdout))).toEqual(['keys', 'endpoints', 'second_factors']);
    expect(keys()).toHaveLength(1);
    expect(keys()[0]).not.toBe(old);
    expect((await create()).status).toBe(201);

    await service.terminate();
    await service.restart();
    expect((await service.call('GET', '/v1/webhooks', { key })).body.webhooks).toHaveLength(3);
  }, 120_000);
});
