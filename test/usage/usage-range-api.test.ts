import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
});
afterAll(() => api.close());

describe('a range of usage', () => {
  it.each([
    ['from=2026-03-14', '2026-03-14', '2026-03-15'],
    ['from=2026-02-12', '2026-02-12', '2026-03-15'],
    ['from=2026-03-01&to=2026-04-01', '2026-03-01', '2026-04-01'],
    ['to=2026-03-14&from=2026-03-13', '2026-03-13', '2026-03-14'],
    ['from=2024-02-29&to=2024-03-01', '2024-02-29', '2024-03-01'],
    ['from=0001-01-01&to=0001-01-02', '0001-01-01', '0001-01-02'],
    ['from=9999-12-30&to=9999-12-31', '9999-12-30', '9999-12-31'],
  ])('%s runs from %s to %s', async (query, from, to) => {
    const answer = await api.usage(key, query);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({ from: `${from}T00:00:00.000Z`, to: `${to}T00:00:00.000Z` });
  });

  it.each([
    ...['to=2026-03-14', 'from=2026-03-15', 'from=2026-03-14&to=2026-03-14', 'from=2026-03-14&to=2026-03-13'],
    ...[
      'from=2026-02-11',
      'from=2026-03-01&to=2026-04-02',
      'from=2026-02-30',
      'from=2025-02-29',
      'from=2026-13-01',
    ],
    ...[
      'from=0000-01-01&to=0000-01-02',
      'from=26-03-14',
      'from=2026-3-14',
      'from=2026-03-14T00:00:00Z',
      'from=',
    ],
    ...[
      'from=2026-03-14&from=2026-03-14',
      'from=2026-03-14&x=1',
      'x',
      'From=2026-03-14',
      'from=2026-03-14%00',
    ],
    ...['from=%20142026-03-14', 'from=+2026-03-14', 'from=10000-01-01', 'from=-0001-01-01&to=0000-01-01'],
  ])('%s is invalid_range', async (query) => {
    const answer = await api.usage(key, query);
    expect([answer.statusCode, answer.json().error.code]).toEqual([400, 'invalid_range']);
  });

  it('of 31 days keeps what was counted on the first of them', async () => {
    await api.get(key, '5.9.0.1');
    clock.set(NOON + 30 * DAY);
    const body = await api.usage(key, 'from=2026-03-14&to=2026-04-14');
    expect(body.json().totals.requests).toBe(1);
  });
});
