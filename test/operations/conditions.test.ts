import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Facts } from '../../cli/operations/facts.ts';
import { durationText, problemsOf, RUNBOOK } from '../../cli/operations/problems.ts';
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
  queues: { due: 5, oldest_due_at: '2026-11-28T09:59:50.000Z', breakers_open: 0 },
  providers: [
    {
      name: 'directory',
      kind: 'directory',
      calls_today: 3,
      failed_today: 1,
      budget_left: null,
      failing_since: null,
    },
  ],
  disk: { used_bytes: 2 ** 30, growth_bytes_per_day: 2 ** 20, free_bytes: 2 ** 35, size_bytes: 2 ** 37 },
  certificates: [{ host: 'api.example', expires_at: '2027-01-28T10:00:00.000Z', error: null }],
  domains: { active: 2, pending: 1, failed: 0 },
  ceilings: [{ name: 'ENRICHMENT_OUTSTANDING', used: 79, limit: 100 }],
  operator_webhook: {
    configured: false,
    pending: 0,
    failing_since: null,
    last_delivered_at: null,
    last_error: null,
  },
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
  [
    'projection_stopped',
    'error',
    {
      projections: [
        { ...LATE, state: 'stopped', stopped_by: 'an event at revision 0: projection sessions: x' },
      ],
    },
    /sessions stopped by an event: an event at revision 0/,
  ],
  [
    'processor_stopped',
    'error',
    { processors: [{ ...LATE, state: 'stopped', stopped_by: 'x' }] },
    /processor sessions/,
  ],
  ['behind', 'warning', { projections: [LATE] }, /31 s behind \(3 events\)/],
  [
    'deliveries_late',
    'error',
    { queues: { due: 1_500, oldest_due_at: '2026-11-28T09:58:00.000Z', breakers_open: 0 } },
    /1,500 deliveries are due, the oldest for 2 min/,
  ],
  [
    'breaker_open',
    'warning',
    { queues: { due: 0, oldest_due_at: null, breakers_open: 1 } },
    /1 webhook endpoint fails/,
  ],
  [
    'provider_failing',
    'warning',
    {
      providers: [
        { ...HEALTHY.providers[0], name: 'http', failing_since: '2026-11-28T09:59:00.000Z' } as never,
      ],
    },
    /provider http fails: .+ 1 of 3 calls today/,
  ],
  [
    'provider_budget',
    'warning',
    { providers: [{ ...HEALTHY.providers[0], budget_left: 0 } as never] },
    /used its budget/,
  ],
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
  [
    'domains_failed',
    'warning',
    { domains: { active: 0, pending: 0, failed: 2 } },
    /2 custom domains do not point here/,
  ],
  ['ceiling_near', 'warning', { ceilings: [{ name: 'max_connections', used: 80, limit: 100 }] }, /80 of 100/],
];

describe('the problems of an installation', () => {
  it('are none while everything works, with a lag of a second and work that is due', () => {
    expect(problemsOf(HEALTHY)).toEqual([]);
  });

  it.each(FAULTS)('are %s (%s)', (code, severity, fault, what) => {
    const [problem, ...others] = problemsOf({ ...HEALTHY, ...fault });
    expect(others).toEqual([]);
    expect(problem).toEqual({
      code,
      severity,
      what: expect.stringMatching(what),
      runbook: `docs/operations.md#${RUNBOOK[code]}`,
    });
  });

  it('each have a heading in the runbook', () => {
    const runbook = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
    const missing = Object.values(RUNBOOK).filter((anchor) => !runbook.includes(`<a id="${anchor}"></a>`));
    expect(missing).toEqual([]);
  });
});

it.each([
  [40, '40 ms'],
  [59_999, '59 s'],
  [3_900_000, '1 h 5 min'],
  [86_400_000 * 3, '3 d'],
])('writes %s ms as %s', (ms, text) => expect(durationText(ms)).toBe(text));
