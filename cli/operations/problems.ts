/** What is wrong with an installation, from its facts alone. */
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { RELEASE } from '../../platform/postgres/upgrade-path.ts';
import { timeText } from '../print.ts';
import type { ConsumerState, Facts } from './facts.ts';

export interface Problem {
  readonly code: string;
  /** An installation with an `error` is not healthy. */
  readonly severity: 'error' | 'warning';
  readonly what: string;
  /** The heading of the runbook that says what to do. */
  readonly runbook: string;
}

type Found = Omit<Problem, 'runbook'>;

/** Where the runbook speaks of each problem (docs/operations.md). */
export const RUNBOOK: Readonly<Record<string, string>> = {
  store_unreachable: 'store',
  store_read_only: 'store-read-only',
  store_unsupported: 'store-unsupported',
  facts_unread: 'store',
  no_process: 'down',
  nobody_leads: 'nobody-leads',
  projection_stopped: 'stopped',
  processor_stopped: 'stopped',
  behind: 'behind',
  deliveries_late: 'deliveries-late',
  breaker_open: 'held',
  provider_failing: 'provider-fails',
  provider_budget: 'provider-held-back',
  clock_wrong: 'clock-wrong',
  releases_differ: 'releases-differ',
  disk_nearly_full: 'disk',
  certificate_ends: 'certificate',
  domains_failed: 'dns',
  ceiling_near: 'ceiling-near',
  operator_webhook_failing: 'operator-webhook-fails',
};

/** Clocks agree within a minute (docs/operations.md, Clocks); a heartbeat is up to a few seconds old. */
const CLOCK_AHEAD_MS = MINUTE;
const BEHIND_MS = 30_000;
const DUE_MS = MINUTE;
const CERTIFICATE_DAYS = 14;
const NEAR = 0.8;

/** Returns what is wrong, errors first. */
export function problemsOf(facts: Facts): Problem[] {
  const found = [
    ...ofStores(facts),
    ...ofProcesses(facts),
    ...ofConsumers('projection', facts.projections),
    ...ofConsumers('processor', facts.processors),
    ...ofQueues(facts),
    ...ofProviders(facts),
    ...ofDisk(facts),
    ...ofNames(facts),
    ...ofCeilings(facts),
    ...ofOperatorWebhook(facts),
  ];
  return found
    .map((one) => ({ ...one, runbook: `docs/operations.md#${RUNBOOK[one.code]}` }))
    .sort((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'));
}

const error = (code: string, what: string): Found => ({ code, severity: 'error', what });
const warning = (code: string, what: string): Found => ({ code, severity: 'warning', what });

const NAMES = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' } as const;

const ofStores = ({ stores, at, unread }: Facts): Found[] => [
  ...stores.flatMap(({ kind, version, error: cause, read_only, supported_until }): Found[] => {
    if (cause !== null) return [error('store_unreachable', cause)];
    const ended = supported_until !== null && Date.parse(supported_until) < at;
    return [
      ...(read_only ? [error('store_read_only', `${NAMES[kind]} accepts no writes`)] : []),
      ...(ended
        ? [warning('store_unsupported', `support of ${NAMES[kind]} ${version} ended on ${supported_until}`)]
        : []),
    ];
  }),
  ...unread.map((what) => error('facts_unread', `could not be read: ${what}`)),
];

function ofProcesses({ processes, stores, unled }: Facts): Found[] {
  if (stores.some(({ kind, error: cause }) => kind === 'postgresql' && cause !== null)) return [];
  const servers = processes.filter(({ role }) => role !== 'command');
  if (servers.length === 0)
    return [
      error(
        'no_process',
        'no server runs: start it (doorplate serve); doorplate doctor says what may keep it from starting',
      ),
    ];
  const serves = servers.some(({ role }) => role !== 'workers');
  const others = servers.filter(({ release }) => release !== RELEASE);
  return [
    ...(serves ? [] : [error('no_process', 'no process serves the API (doorplate serve --role api)')]),
    ...(unled.length === 0 ? [] : [error('nobody_leads', `no process runs ${unled.join(', ')}`)]),
    ...servers.flatMap(({ id, role, clock_ahead_ms: ms }) =>
      Math.abs(ms) < CLOCK_AHEAD_MS
        ? []
        : [
            error(
              'clock_wrong',
              `the clock of process ${id} (${role}) is ${durationText(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} this machine's`,
            ),
          ],
    ),
    ...others.map(({ id, role, release }) =>
      warning(
        'releases_differ',
        `process ${id} (${role}) runs version ${release ?? 'before 0.2.0'}, and this is ${RELEASE}`,
      ),
    ),
  ];
}

/** Consumers that one event has stopped are one problem. */
function ofConsumers(kind: 'projection' | 'processor', consumers: readonly ConsumerState[]): Found[] {
  const stopped = consumers.filter(({ state }) => state === 'stopped');
  const late = consumers.filter(({ state, lag_ms }) => state !== 'stopped' && lag_ms >= BEHIND_MS);
  return [
    ...[...Map.groupBy(stopped, eventThatStopped)].map(([event, group]) => {
      const names = group.map(({ name }) => name).join(', ');
      const [{ stopped_by = '' } = {}] = group;
      return error(
        `${kind}_stopped`,
        `${kind} ${names} stopped by an event: ${event} (${reasonIn(stopped_by ?? '')})`,
      );
    }),
    ...late.map(({ name, lag_ms, lag_events }) =>
      warning(
        'behind',
        `${kind} ${name} is ${durationText(lag_ms)} behind (${countText(lag_events)} events)`,
      ),
    ),
  ];
}

/** `TYPE at revision N of STREAM: projection NAME: REASON`, where a consumer names itself. */
const eventThatStopped = ({ stopped_by }: ConsumerState): string =>
  (stopped_by ?? '').split(': ', 1)[0] ?? '';

const MAX_REASON = 200;

/** The reason in a line: of a list of issues (zod's), each with its path. */
function reasonIn(stoppedBy: string): string {
  const parts = stoppedBy.split(': ').slice(1);
  const reason = parts.filter((part) => !/^(projection|processor) [\w-]+$/.test(part)).join(': ');
  try {
    const issues = JSON.parse(reason) as readonly {
      readonly path: readonly unknown[];
      readonly message: string;
    }[];
    return issues
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; ')
      .slice(0, MAX_REASON);
  } catch {
    return reason.split(/\s+/).join(' ').slice(0, MAX_REASON);
  }
}

function ofQueues({ queues: { due, oldest_due_at, breakers_open }, at }: Facts): Found[] {
  const lateMs = oldest_due_at === null ? 0 : at - Date.parse(oldest_due_at);
  const held = breakers_open === 1 ? 'webhook endpoint fails' : 'webhook endpoints fail';
  return [
    ...(lateMs < DUE_MS
      ? []
      : [
          error(
            'deliveries_late',
            `${countText(due)} deliveries are due, the oldest for ${durationText(lateMs)}`,
          ),
        ]),
    ...(breakers_open === 0
      ? []
      : [warning('breaker_open', `${breakers_open} ${held}: the circuit breaker holds the deliveries back`)]),
  ];
}

const ofProviders = ({ providers }: Facts): Found[] =>
  providers.flatMap(({ name, failing_since, calls_today, failed_today, budget_left }) => [
    ...(failing_since === null
      ? []
      : [
          warning(
            'provider_failing',
            `provider ${name} fails: the last time at ${timeText(new Date(failing_since))}, ${countText(failed_today)} of ${countText(calls_today)} calls today; doorplate provider try IP says why`,
          ),
        ]),
    ...(budget_left === 0
      ? [warning('provider_budget', `provider ${name} has used its budget of today`)]
      : []),
  ]);

function ofDisk({ disk: { free_bytes, size_bytes, growth_bytes_per_day } }: Facts): Found[] {
  if (free_bytes === null || size_bytes === null || size_bytes === 0) return [];
  const share = free_bytes / size_bytes;
  const days =
    growth_bytes_per_day !== null && growth_bytes_per_day > 0 ? free_bytes / growth_bytes_per_day : null;
  if (share >= 0.1 && (days === null || days >= 7)) return [];
  const lasts = days === null ? '' : `, enough for ${Math.floor(days)} days`;
  const what = `${bytesText(free_bytes)} of the data folder's disk are free (${Math.round(share * 100)} %${lasts})`;
  return [
    share < 0.05 || (days !== null && days < 2)
      ? error('disk_nearly_full', what)
      : warning('disk_nearly_full', what),
  ];
}

const ofNames = ({ certificates, domains, at }: Facts): Found[] => [
  ...certificates.flatMap(({ host, expires_at, error: cause }): Found[] => {
    const leftMs = expires_at === null ? 0 : Date.parse(expires_at) - at;
    if (cause !== null || leftMs <= 0) {
      return [
        error('certificate_ends', `the certificate of ${host} is not accepted: ${cause ?? 'it has expired'}`),
      ];
    }
    if (leftMs > CERTIFICATE_DAYS * DAY) return [];
    return [warning('certificate_ends', `the certificate of ${host} ends in ${durationText(leftMs)}`)];
  }),
  ...(domains.failed === 0
    ? []
    : [
        warning(
          'domains_failed',
          `${domains.failed} custom ${domains.failed === 1 ? 'domain does' : 'domains do'} not point here`,
        ),
      ]),
];

const ofCeilings = ({ ceilings }: Facts): Found[] =>
  ceilings.flatMap(({ name, used, limit }) =>
    limit === 0 || used / limit < NEAR
      ? []
      : [warning('ceiling_near', `${name}: ${countText(used)} of ${countText(limit)} are used`)],
  );

const ofOperatorWebhook = ({
  operator_webhook: { failing_since, pending, last_error },
  at,
}: Facts): Found[] =>
  failing_since === null
    ? []
    : [
        warning(
          'operator_webhook_failing',
          `the operator's webhook has not accepted ${countText(pending)} alerts for ${durationText(at - Date.parse(failing_since))}: ${last_error}`,
        ),
      ];

export const countText = (value: number): string => value.toLocaleString('en-US');

const UNITS: readonly (readonly [string, number])[] = [
  ['d', DAY],
  ['h', 60 * MINUTE],
  ['min', MINUTE],
  ['s', 1_000],
];

/** Formats a duration by its two largest units: `1 h 5 min`. */
export function durationText(ms: number): string {
  const first = UNITS.findIndex(([, size]) => ms >= size);
  if (first === -1) return `${Math.round(ms)} ms`;
  let rest = ms;
  const parts = UNITS.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? '' : `${count} ${unit}`;
  });
  return parts.filter((part) => part !== '').join(' ');
}

/** Formats bytes by binary units: `1.5 GiB`. */
export function bytesText(bytes: number): string {
  const exponent = Math.min(4, Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10));
  const value = bytes / 1_024 ** exponent;
  return `${exponent === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][exponent]}`;
}
