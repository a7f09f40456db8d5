import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runbookOf } from '../../operations/condition.ts';
import { CONDITIONS } from '../../operations/conditions.ts';
import type { Facts } from '../../operations/facts.ts';
import { durationText } from '../../operations/texts.ts';
import { RELEASE } from '../../platform/postgres/upgrade-path.ts';

const AT = Date.parse('2026-11-28T10:00:00Z');
const STORE = {
  kind: 'postgresql',
  version: '18.4',
  latency_ms: 1,
  supported_until: '2030-11-14',
  error: null,
  read_only: false,
} as const;
const PROCESS = {
  id: 'p1',
  role: 'all',
  release: RELEASE,
  started_at: '2026-11-28T09:00:00.000Z',
  leads: ['visits'],
  clock_ahead_ms: -900,
};
const HEALTHY: Facts = {
  at: AT,
  stores: [STORE],
  processes: [PROCESS],
  unled: [],
  projections: [{ name: 'sessions', lag_events: 3, lag_ms: 900, state: 'behind', stopped_by: null }],
  processors: [],
  disk: { used_bytes: 2 ** 30, growth_bytes_per_day: 2 ** 20, free_bytes: 2 ** 35, size_bytes: 2 ** 37 },
  certificates: [{ host: 'api.example', expires_at: '2027-01-28T10:00:00.000Z', error: null }],
  unread: [],
};
const LATE = { name: 'sessions', lag_events: 3, lag_ms: 31_000, state: 'behind', stopped_by: null } as const;

const FAULTS: readonly (readonly [string, 'error' | 'warning', Partial<Facts>, RegExp])[] = [
  [
    'store_unreachable',
    'error',
    { stores: [{ ...STORE, error: 'DATABASE_URL: x cannot be used' }], processes: [] },
    /DATABASE_URL/,
  ],
  ['store_read_only', 'error', { stores: [{ ...STORE, read_only: true }] }, /PostgreSQL accepts no writes/],
  [
    'store_unsupported',
    'warning',
    { stores: [{ ...STORE, supported_until: '2026-11-12' }] },
    /ended on 2026-11-12/,
  ],
  ['facts_unread', 'error', { unread: ['queues: timeout'] }, /queues: timeout/],
  ['no_process', 'error', { processes: [] }, /no server runs/],
  ['no_process', 'error', { processes: [{ ...PROCESS, role: 'workers' }] }, /no process serves the API/],
  ['nobody_leads', 'error', { unled: ['visits'] }, /no process runs visits/],
  [
    'clock_wrong',
    'error',
    { processes: [{ ...PROCESS, clock_ahead_ms: 3_600_000 }] },
    /p1 \(all\) is 1 h ahead of/,
  ],
  ['releases_differ', 'warning', { processes: [{ ...PROCESS, release: '0.1.9' }] }, /runs version 0\.1\.9/],
  ['behind', 'warning', { projections: [LATE] }, /31 s behind \(3 events\)/],
  [
    'disk_nearly_full',
    'error',
    { disk: { ...HEALTHY.disk, free_bytes: 2 ** 30 } },
    /1\.0 GiB .* are free \(1 %/,
  ],
  [
    'disk_nearly_full',
    'warning',
    { disk: { ...HEALTHY.disk, growth_bytes_per_day: 2 ** 33 } },
    /enough for 4 days/,
  ],
  [
    'certificate_ends',
    'warning',
    { certificates: [{ host: 'api.example', expires_at: '2026-12-01T10:00:00.000Z', error: null }] },
    /api\.example ends in 3 d/,
  ],
  [
    'certificate_ends',
    'error',
    {
      certificates: [
        { host: 'api.example', expires_at: '2026-11-01T10:00:00.000Z', error: 'CERT_HAS_EXPIRED' },
      ],
    },
    /CERT_HAS_EXPIRED/,
  ],
];

const problemsOf = (facts: Facts) => CONDITIONS.flatMap((one) => one.findInFacts(facts));

describe('the conditions that status reads', () => {
  it('are none while everything works, with a lag of a second', () => {
    expect(problemsOf(HEALTHY)).toEqual([]);
  });

  it.each(FAULTS)('are %s (%s)', (code, severity, fault, text) => {
    const [problem, ...others] = problemsOf({ ...HEALTHY, ...fault });
    expect(others).toEqual([]);
    expect(problem).toMatchObject({ code, severity, text: expect.stringMatching(text) });
  });
});

describe('each condition', () => {
  it('has a code of its own, and the row of the runbook that its anchor names', () => {
    const codes = CONDITIONS.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    const runbook = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
    const ofOperator = CONDITIONS.filter(({ channels }) => channels.includes('status'));
    const missing = ofOperator.filter((one) => {
      const anchor = runbookOf(one).split('#')[1];
      const row = runbook.split('\n').find((line) => line.includes(`<a id="${anchor}"></a>`));
      return !row?.includes(`\`${one.code}\``);
    });
    expect(missing.map(({ code }) => code)).toEqual([]);
  });

  it('is listed by docs/runbook.md among the types of the webhook if it is told there', () => {
    const page = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
    const listed = [...page.matchAll(/^\| `operator\.(\w+)` \|/gm)].map(([, code]) => code);
    const told = CONDITIONS.filter(({ channels }) => channels.includes('webhook')).map(({ code }) => code);
    expect(listed.toSorted()).toEqual([...told, 'endpoint_recovered'].toSorted());
  });
});

it.each([
  [40, '40 ms'],
  [59_999, '59 s'],
  [3_900_000, '1 h 5 min'],
  [86_400_000 * 3, '3 d'],
])('writes %s ms as %s', (ms, text) => expect(durationText(ms)).toBe(text));
