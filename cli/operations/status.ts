import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { NothingThere } from '../../bin/runtime.ts';
import { type Found, runbookOf } from '../../operations/condition.ts';
import type { ConsumerState, Disk } from '../../operations/facts.ts';
import { bytesText, countText, durationText, timeText } from '../../operations/texts.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { RELEASE } from '../../platform/postgres/upgrade-path.ts';
import type { ProviderState } from '../../queries/lookup/lookups.ts';
import { printable, styled, table } from '../print.ts';
import { Refused } from '../session.ts';
import { readState, type State, stateWithoutStores } from './state.ts';
import { openStores, refuseEmptyDatabase } from './stores.ts';

interface StatusOptions {
  readonly json: boolean;
  readonly watch: boolean;
  readonly exitWhenHealthy: boolean;
}

const WATCH_MS = 2_000;
const CLEAR = '\u001b[H\u001b[2J';

/** Adds `doorplate status`. */
export function addStatusCommand(program: Command): void {
  program
    .command('status')
    .description('what runs, how far it is and what is wrong; exits 1 if the installation is not healthy')
    .option('--json', 'print JSON', false)
    .option('--watch', 'print it again every two seconds', false)
    .option('--exit-when-healthy', 'wait until it is healthy, then end', false)
    .action(async (options: StatusOptions) => {
      const config = loadConfig(process.env);
      const stores = await openStores(config).catch((error: Error) => {
        if (error instanceof NothingThere) throw error;
        return error;
      });
      try {
        if (!(stores instanceof Error)) await refuseEmptyDatabase(stores);
        const read = () =>
          stores instanceof Error ? stateWithoutStores(config, stores) : readState(config, stores);
        await showUntilDone(read, options);
      } finally {
        if (!(stores instanceof Error)) await stores.close();
      }
    });
}

async function showUntilDone(read: () => Promise<State>, options: StatusOptions): Promise<void> {
  for (;;) {
    const state = await read();
    const errors = state.problems.filter(({ severity }) => severity === 'error').length;
    const isLast = options.exitWhenHealthy ? errors === 0 : !options.watch;
    if (isLast || options.watch) show(state, errors === 0, options);
    if (isLast && errors > 0)
      throw new Refused(`not healthy: ${errors} ${errors === 1 ? 'problem' : 'problems'}`);
    if (isLast) return;
    await pause(WATCH_MS);
  }
}

function show(state: State, healthy: boolean, { json, watch }: StatusOptions): void {
  // Every other field of the state is a field of the JSON.
  const { at: _, unled: _u, unread: _r, problems: found, ...rest } = state;
  const problems = found.map(({ code, severity, text }) => ({
    code,
    severity,
    what: text,
    runbook: runbookOf({ code }),
  }));
  const text = json
    ? printable(JSON.stringify({ healthy, version: RELEASE, ...rest, problems }))
    : page(state, healthy);
  process.stdout.write(`${watch && !json && process.stdout.isTTY ? CLEAR : ''}${text}\n`);
}

function page(state: State, healthy: boolean): string {
  const { stores, processes, projections, processors, providers, disk, ceilings, problems, at } = state;
  const warnings = problems.filter(({ severity }) => severity === 'warning').length;
  const warningText = warnings === 0 ? '' : `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
  const head = (healthy ? styled('green', 'healthy') : styled('red', 'not healthy')) + warningText;
  return [
    `Doorplate ${RELEASE}: ${head}, ${timeText(new Date(at))}`,
    section('Problems', problems.length === 0 ? 'none' : problemLines(problems)),
    section(
      'Stores',
      table(
        stores.map(({ kind, version, latency_ms, supported_until, error }) => ({
          store: kind,
          version,
          latency: latency_ms === null ? null : `${latency_ms} ms`,
          'supported until': supported_until,
          state: error === null ? 'up' : 'away',
        })),
      ),
    ),
    section(
      'Processes',
      table(
        processes.map(({ id, role, release, started_at, leads }) => ({
          process: id,
          role,
          version: release,
          started: started_at,
          leads: leads.join(', ') || null,
        })),
      ),
    ),
    section('Projections and processors', consumerLines([...projections, ...processors])),
    section('Deliveries', deliveriesLine(state)),
    section('Providers', table(providers.map(providerRow))),
    section('Disk', diskLine(disk)),
    section(
      'Ceilings',
      table(
        ceilings.map(({ name, used, limit }) => ({
          name,
          used: countText(used),
          limit: countText(limit),
          share: limit === 0 ? null : `${Math.round((used / limit) * 100)} %`,
        })),
      ),
    ),
    section('Names', namesLine(state)),
    section("Operator's webhook", webhookLine(state)),
    styled(
      'dim',
      'doorplate doctor checks the set-up: variables, keys, clocks, ports and the way through the proxy.',
    ),
  ].join('\n\n');
}

function deliveriesLine({ at, queues: { due, oldest_due_at, breakers_open } }: State): string {
  const oldest =
    oldest_due_at === null ? '' : `, the oldest for ${durationText(at - Date.parse(oldest_due_at))}`;
  return `${countText(due)} due${oldest}; ${breakers_open} endpoints held back by their breaker`;
}

const providerRow = ({
  name,
  kind,
  calls_today,
  failed_today,
  budget_left,
  failing_since,
}: ProviderState) => ({
  name,
  kind,
  'calls today': calls_today,
  'failed today': failed_today,
  'budget left': budget_left,
  'failing since': failing_since,
});

const section = (title: string, text: string): string => `${styled('bold', title)}\n${text}`;

/** A partner may have a thousand silent trackers. */
const SUBJECTS_SHOWN = 10;

/** Formats the problems by code, each code with its runbook. */
const problemLines = (problems: readonly Found[]): string =>
  [...Map.groupBy(problems, ({ code, severity }) => `${severity} ${code}`).values()]
    .map((some) => {
      const shown = some.slice(0, SUBJECTS_SHOWN).map(problemLine);
      const more = some.length - shown.length;
      return [
        ...shown,
        ...(more > 0 ? [`         and ${countText(more)} more (--json has all)`] : []),
        ...some.slice(0, 1).map((one) => `         ${styled('dim', runbookOf(one))}`),
      ].join('\n');
    })
    .join('\n');

const problemLine = ({ severity, code, text }: Found): string =>
  `${styled(severity === 'error' ? 'red' : 'yellow', severity.padEnd(7))}  ${code}: ${printable(text)}`;

/** Formats consumers: current ones as one line, the others as a table. */
function consumerLines(consumers: readonly ConsumerState[]): string {
  const late = consumers.filter(({ state }) => state !== 'current');
  const current = `${consumers.length - late.length} of ${consumers.length} are current`;
  if (late.length === 0) return current;
  const rows = late.map(({ name, state, lag_events, lag_ms }) => ({
    name,
    state,
    'events behind': lag_events,
    'behind for': durationText(lag_ms),
  }));
  return `${current}:\n${table(rows)}`;
}

function diskLine({ used_bytes, growth_bytes_per_day, free_bytes, size_bytes }: Disk): string {
  const used = used_bytes === null ? 'size unknown' : `${bytesText(used_bytes)} used by the database`;
  const growth =
    growth_bytes_per_day === null
      ? 'growth known after an hour'
      : `${growth_bytes_per_day < 0 ? '' : '+'}${bytesText(growth_bytes_per_day)} a day`;
  const free =
    free_bytes === null || size_bytes === null
      ? ''
      : `; ${bytesText(free_bytes)} of ${bytesText(size_bytes)} free`;
  return `${used}, ${growth}${free}`;
}

function namesLine({ certificates, domains }: State): string {
  const shown = certificates.map(
    ({ host, expires_at, error }) =>
      `certificate of ${host}: ${error ?? (expires_at === null ? 'unknown' : `until ${timeText(new Date(expires_at))}`)}`,
  );
  return [
    ...shown,
    `custom domains: ${domains.active} active, ${domains.pending} pending, ${domains.failed} failed`,
  ].join('\n');
}

function webhookLine({ operator_webhook: { configured, pending, last_delivered_at } }: State): string {
  if (!configured) return 'not set (OPERATOR_WEBHOOK_URL)';
  const last =
    last_delivered_at === null
      ? 'none delivered yet'
      : `last delivered ${timeText(new Date(last_delivered_at))}`;
  return `${countText(pending)} alerts pending, ${last}`;
}
