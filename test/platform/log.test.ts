import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createLogger, forPeople } from '../../platform/telemetry/log.ts';

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

it('writes a line for people on a terminal', () => {
  const line = JSON.stringify({
    level: 40,
    time: '2026-11-28T10:05:12.000Z',
    msg: 'a visit',
    peer: 'p',
    n: 2,
  });
  expect(stripVTControlCharacters(forPeople(line))).toBe('10:05:12 warn  a visit  peer=p  n=2\n');
});
