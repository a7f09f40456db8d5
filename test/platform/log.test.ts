import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../platform/telemetry/log.ts';

function capture(level = 'info') {
  const lines: string[] = [];
  const log = createLogger({ level, destination: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

describe('the logger', () => {
  it('writes one JSON object a line, with the time in ISO 8601', () => {
    const { log, lines } = capture();
    log.info({ tracker: 7 }, 'a visit');
    log.debug('not shown');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      tracker: 7,
      msg: 'a visit',
    });
  });

  it('masks secrets by their field names', () => {
    const { log, lines } = capture();
    log.info({ req: { headers: { authorization: 'Basic SECRET', cookie: 'SECRET' } } });
    log.info({
      api_key: 'SECRET',
      webhook: { secret: 'SECRET' },
      user: { email: 'SECRET' },
      password: 'SECRET',
    });
    expect(lines.join()).not.toContain('SECRET');
    expect(lines.join()).toContain('[redacted]');
  });

  it('masks secrets inside a text', () => {
    const { log, lines } = capture();
    log.info('sent Authorization: Bearer SECRET.abc-1 to them');
    log.info({ where: 'postgresql://doorplate:SECRET@127.0.0.1:5432/doorplate' });
    log.error(new Error('whsec_SECRET+/= is wrong, ask jo.SECRET@mail.example.org'));
    expect(lines.join()).not.toContain('SECRET');
    for (const line of lines) JSON.parse(line);
  });
});

it('goes on without a line for which a full disk has no room', () => {
  const log = new URL('../../platform/telemetry/log.ts', import.meta.url);
  const program = `import { createLogger } from '${log.href}';
    const log = createLogger({ level: 'info', destination: 'stderr' });
    for (let n = 0; n < 3; n += 1) { log.info('x'.repeat(60_000)); await new Promise(setImmediate); }
    process.stdout.write('alive');`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', openSync('/dev/full', 'w')],
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'alive' });
});
