/** Conditions of processes, stores and the machine, which `doorplate status` alone can read. */
import { RELEASE } from '../platform/postgres/upgrade-path.ts';
import { type Condition, type Found, statusCondition } from './condition.ts';
import type { Disk, Facts } from './facts.ts';
import { bytesText, countText, durationText } from './texts.ts';
import { CERTIFICATE_ENDS_MS, CLOCK_AHEAD_MS, CONSUMER_BEHIND_MS, DISK } from './thresholds.ts';

type Problem = Omit<Found, 'code'>;
const error = (text: string): Problem => ({ severity: 'error', text });
const warning = (text: string): Problem => ({ severity: 'warning', text });

const NAMES = { postgresql: 'PostgreSQL', eventstoredb: 'EventStoreDB' } as const;

/** Returns the processes that serve or work; null: PostgreSQL, which has their registry, cannot be reached. */
const serversOf = ({ stores, processes }: Facts) =>
  stores.some(({ kind, error: cause }) => kind === 'postgresql' && cause !== null)
    ? null
    : processes.filter(({ role }) => role !== 'command');

function missingProcess(facts: Facts): Problem[] {
  const servers = serversOf(facts);
  if (servers === null || servers.some(({ role }) => role !== 'workers')) return [];
  return servers.length > 0
    ? [error('no process serves the API (doorplate serve --role api)')]
    : [
        error(
          'no server runs: start it (doorplate serve); doorplate doctor says what may keep it from starting',
        ),
      ];
}

function nearlyFull({ free_bytes, size_bytes, growth_bytes_per_day }: Disk): Problem[] {
  if (free_bytes === null || size_bytes === null || size_bytes === 0) return [];
  const share = free_bytes / size_bytes;
  const days =
    growth_bytes_per_day !== null && growth_bytes_per_day > 0 ? free_bytes / growth_bytes_per_day : null;
  const isBelow = (least: { readonly share: number; readonly days: number }): boolean =>
    share < least.share || (days !== null && days < least.days);
  if (!isBelow(DISK.warning)) return [];
  const lasts = days === null ? '' : `, enough for ${Math.floor(days)} days`;
  const text = `${bytesText(free_bytes)} of the data folder's disk are free (${Math.round(share * 100)} %${lasts})`;
  return [isBelow(DISK.error) ? error(text) : warning(text)];
}

const endingCertificates = ({ certificates, at }: Facts): Problem[] =>
  certificates.flatMap(({ host, expires_at, error: cause }) => {
    const leftMs = expires_at === null ? 0 : Date.parse(expires_at) - at;
    if (cause !== null || leftMs <= 0)
      return [error(`the certificate of ${host} is not accepted: ${cause ?? 'it has expired'}`)];
    if (leftMs > CERTIFICATE_ENDS_MS) return [];
    return [warning(`the certificate of ${host} ends in ${durationText(leftMs)}`)];
  });

const consumersBehind = (kind: string, consumers: Facts['projections']): Problem[] =>
  consumers
    .filter(({ state, lag_ms }) => state !== 'stopped' && lag_ms >= CONSUMER_BEHIND_MS)
    .map(({ name, lag_ms, lag_events }) =>
      warning(`${kind} ${name} is ${durationText(lag_ms)} behind (${countText(lag_events)} events)`),
    );

export const INSTALLATION_CONDITIONS: readonly Condition[] = [
  statusCondition('store_unreachable', ({ stores }) =>
    stores.flatMap(({ error: cause }) => (cause === null ? [] : [error(cause)])),
  ),
  statusCondition('store_read_only', ({ stores }) =>
    stores.filter(({ read_only }) => read_only).map(({ kind }) => error(`${NAMES[kind]} accepts no writes`)),
  ),
  statusCondition('store_unsupported', ({ stores, at }) =>
    stores
      .filter(({ supported_until: end }) => end !== null && Date.parse(end) < at)
      .map(({ kind, version, supported_until }) =>
        warning(`support of ${NAMES[kind]} ${version} ended on ${supported_until}`),
      ),
  ),
  statusCondition('facts_unread', ({ unread }) => unread.map((what) => error(`could not be read: ${what}`))),
  statusCondition('no_process', missingProcess),
  statusCondition('nobody_leads', (facts) =>
    serversOf(facts)?.length && facts.unled.length > 0
      ? [error(`no process runs ${facts.unled.join(', ')}`)]
      : [],
  ),
  statusCondition('clock_wrong', (facts) =>
    (serversOf(facts) ?? [])
      .filter(({ clock_ahead_ms: ms }) => Math.abs(ms) >= CLOCK_AHEAD_MS)
      .map(({ id, role, clock_ahead_ms: ms }) =>
        error(
          `the clock of process ${id} (${role}) is ${durationText(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} this machine's`,
        ),
      ),
  ),
  statusCondition('releases_differ', (facts) =>
    (serversOf(facts) ?? [])
      .filter(({ release }) => release !== RELEASE)
      .map(({ id, role, release }) =>
        warning(`process ${id} (${role}) runs version ${release ?? 'before 0.2.0'}, and this is ${RELEASE}`),
      ),
  ),
  statusCondition('behind', ({ projections, processors }) => [
    ...consumersBehind('projection', projections),
    ...consumersBehind('processor', processors),
  ]),
  statusCondition('disk_nearly_full', ({ disk }) => nearlyFull(disk)),
  statusCondition('certificate_ends', endingCertificates),
];
