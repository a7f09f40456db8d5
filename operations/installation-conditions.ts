/** Conditions of processes, stores and the machine, which `doorplate status` alone can read. */
import { RELEASE } from '../platform/postgres/upgrade-path.ts';
import { type Condition, type Severity, statusCondition } from './condition.ts';
import type { Disk, Facts } from './facts.ts';
import { bytesText, countText, durationText } from './texts.ts';
import { BEHIND_MS, CERTIFICATE_ENDS_MS, CLOCK_AHEAD_MS, DISK } from './thresholds.ts';

const NAMES = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' } as const;

/** Processes of a database that is away are unknown. */
const knowsProcesses = ({ stores }: Facts): boolean =>
  stores.every(({ kind, error }) => kind !== 'postgresql' || error === null);
const serversOf = (facts: Facts) =>
  knowsProcesses(facts) ? facts.processes.filter(({ role }) => role !== 'command') : [];

function missingProcesses(facts: Facts): string[] {
  if (!knowsProcesses(facts)) return [];
  const servers = serversOf(facts);
  if (servers.length === 0)
    return [
      'no server runs: start it (doorplate serve); doorplate doctor says what may keep it from starting',
    ];
  return servers.some(({ role }) => role !== 'workers')
    ? []
    : ['no process serves the API (doorplate serve --role api)'];
}

function diskSeverity({ free_bytes, size_bytes, growth_bytes_per_day }: Disk): Severity | null {
  if (free_bytes === null || size_bytes === null || size_bytes === 0) return null;
  const share = free_bytes / size_bytes;
  const days = daysLeft({ free_bytes, growth_bytes_per_day }) ?? Number.POSITIVE_INFINITY;
  for (const severity of ['error', 'warning'] as const)
    if (share < DISK[severity].share || days < DISK[severity].days) return severity;
  return null;
}

const daysLeft = ({
  free_bytes,
  growth_bytes_per_day,
}: Pick<Disk, 'free_bytes' | 'growth_bytes_per_day'>): number | null =>
  free_bytes !== null && growth_bytes_per_day !== null && growth_bytes_per_day > 0
    ? free_bytes / growth_bytes_per_day
    : null;

function diskText(disk: Disk): string {
  const days = daysLeft(disk);
  const share = Math.round(((disk.free_bytes ?? 0) / (disk.size_bytes ?? 1)) * 100);
  const lasts = days === null ? '' : `, enough for ${Math.floor(days)} days`;
  return `${bytesText(disk.free_bytes ?? 0)} of the data folder's disk are free (${share} %${lasts})`;
}

/** `leftMs` is 0 or less of a certificate that is not accepted. */
const endingCertificates = ({ certificates, at }: Facts) =>
  certificates
    .map(({ host, expires_at, error }) => ({
      host,
      error,
      leftMs: error !== null || expires_at === null ? 0 : Date.parse(expires_at) - at,
    }))
    .filter(({ leftMs }) => leftMs <= CERTIFICATE_ENDS_MS);

export const INSTALLATION_CONDITIONS: readonly Condition[] = [
  statusCondition({
    code: 'store_unreachable',
    severity: 'error',
    ofFacts: ({ stores }) => stores.flatMap(({ error }) => error ?? []),
    text: (error) => error,
  }),
  statusCondition({
    code: 'store_read_only',
    severity: 'error',
    ofFacts: ({ stores }) => stores.filter(({ read_only }) => read_only),
    text: ({ kind }) => `${NAMES[kind]} accepts no writes`,
  }),
  statusCondition({
    code: 'store_unsupported',
    severity: 'warning',
    ofFacts: ({ stores, at }) =>
      stores.filter(({ supported_until: end }) => end !== null && Date.parse(end) < at),
    text: ({ kind, version, supported_until }) =>
      `support of ${NAMES[kind]} ${version} ended on ${supported_until}`,
  }),
  statusCondition({
    code: 'facts_unread',
    severity: 'error',
    ofFacts: ({ unread }) => unread,
    text: (what) => `could not be read: ${what}`,
  }),
  statusCondition({
    code: 'no_process',
    severity: 'error',
    ofFacts: missingProcesses,
    text: (what) => what,
  }),
  statusCondition({
    code: 'nobody_leads',
    severity: 'error',
    ofFacts: (facts) => (serversOf(facts).length > 0 && facts.unled.length > 0 ? [facts.unled] : []),
    text: (groups) => `no process runs ${groups.join(', ')}`,
  }),
  statusCondition({
    code: 'clock_wrong',
    severity: 'error',
    ofFacts: (facts) => serversOf(facts).filter(({ clock_ahead_ms: ms }) => Math.abs(ms) >= CLOCK_AHEAD_MS),
    text: ({ id, role, clock_ahead_ms: ms }) =>
      `the clock of process ${id} (${role}) is ${durationText(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} this machine's`,
  }),
  statusCondition({
    code: 'releases_differ',
    severity: 'warning',
    ofFacts: (facts) => serversOf(facts).filter(({ release }) => release !== RELEASE),
    text: ({ id, role, release }) =>
      `process ${id} (${role}) runs version ${release ?? 'before 0.2.0'}, and this is ${RELEASE}`,
  }),
  statusCondition({
    code: 'behind',
    severity: 'warning',
    ofFacts: ({ projections, processors }) =>
      [
        ...projections.map((one) => ({ ...one, kind: 'projection' })),
        ...processors.map((one) => ({ ...one, kind: 'processor' })),
      ].filter(({ state, lag_ms }) => state !== 'stopped' && lag_ms >= BEHIND_MS),
    text: ({ kind, name, lag_ms, lag_events }) =>
      `${kind} ${name} is ${durationText(lag_ms)} behind (${countText(lag_events)} events)`,
  }),
  statusCondition({
    code: 'disk_nearly_full',
    ofFacts: ({ disk }) => {
      const severity = diskSeverity(disk);
      return severity === null ? [] : [{ disk, severity }];
    },
    severity: ({ severity }) => severity,
    text: ({ disk }) => diskText(disk),
  }),
  statusCondition({
    code: 'certificate_ends',
    ofFacts: endingCertificates,
    severity: ({ leftMs }) => (leftMs <= 0 ? 'error' : 'warning'),
    text: ({ host, error, leftMs }) =>
      leftMs <= 0
        ? `the certificate of ${host} is not accepted: ${error ?? 'it has expired'}`
        : `the certificate of ${host} ends in ${durationText(leftMs)}`,
  }),
];
