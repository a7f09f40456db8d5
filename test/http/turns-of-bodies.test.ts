import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import { aRoute, aServer, authorized } from './shell.ts';

afterEach(() => void vi.restoreAllMocks());

it('handles requests whose bodies end together a few in a turn', async () => {
  let now = 0;
  let handled = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const handle = () => {
    handled += 1;
    now += 1;
    return { status: 204, body: null };
  };
  const app = aServer({ routes: [aRoute({ method: 'POST', path: '/v1/lookup', body: 'json', handle })] });
  await app.ready();
  const answers = Array.from({ length: 100 }, () =>
    app.inject({ method: 'POST', url: '/v1/lookup', headers: authorized, payload: { ip: '192.0.2.1' } }),
  );
  const steps: number[] = [];
  for (let before = 0; handled < 100; before = handled) {
    await setImmediate();
    steps.push(handled - before);
  }
  expect(Math.max(...steps)).toBeLessThanOrEqual(4);
  for (const { statusCode } of await Promise.all(answers)) expect(statusCode).toBe(204);
  await app.close();
});
