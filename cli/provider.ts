import type { Command } from 'commander';
import { parsePublicAddress } from '../domain/kernel/address.ts';
import { utcDay } from '../domain/kernel/time.ts';
import type { ProviderSettings } from '../platform/config/provider-settings.ts';
import { createRateLimiter } from '../platform/limits/rate-limit.ts';
import { type TriedChain, tryChain } from '../processors/lookup/providers/chain.ts';
import { readPreset } from '../processors/lookup/providers/mapping.ts';
import { type ProviderDay, readProviderDay, readSaved } from '../queries/lookup/lookups.ts';
import { print, printable, table } from './print.ts';
import { Refused, withRuntime, withSession } from './session.ts';

/** Adds `doorplate lookup IP`, which prints the saved result with its providers and starts no enrichment. */
export function addLookupCommand(program: Command): void {
  program
    .command('lookup <ip>')
    .description('what is saved of an address, and which providers said it')
    .option('--json', 'print JSON', false)
    .action((text: string, { json }: { json: boolean }) => {
      const ip = parsePublicAddress(text);
      if (ip === null) throw new Refused(`invalid_ip: ${text}`);
      return withSession(async ({ pool, store, projected }) => {
        await projected(await store.head(), 'lookups');
        const saved = await readSaved(pool, ip);
        if (!saved) throw new Refused(`nothing is saved of ${ip}: POST /v1/lookup requests it`);
        print(saved, json);
      });
    });
}

/** Adds `doorplate provider try|list`. */
export function addProviderCommands(program: Command): void {
  const provider = program.command('provider').description('providers of company data');

  provider
    .command('try <ip>')
    .description('ask every configured provider about an address, and show what they answer; saves nothing')
    .option('--json', 'print JSON', false)
    .action(async (text: string, { json }: { json: boolean }) => {
      const ip = parsePublicAddress(text);
      if (ip === null) throw new Refused(`invalid_ip: ${text} is not a public address`);
      const tried = await withRuntime(async (runtime) => {
        const { pool, clock } = runtime;
        const limiter = createRateLimiter({ pool, clock, alone: () => false });
        // Imported here, because every command would otherwise load the vendors' HTTP client.
        const { openChain } = await import('../bin/modules/providers.ts');
        const chain = await openChain(runtime, limiter, null);
        const signal = AbortSignal.timeout(chain.longestMs);
        const asked = tryChain(chain.providers, ip, { signal, at: clock.now() });
        return asked.finally(chain.close);
      });
      process.stdout.write(`${json ? printable(JSON.stringify(tried, jsonValue)) : describe(tried)}\n`);
      const silent = tried.providers.filter(({ record }) => record === null);
      if (silent.length > 0) {
        throw new Refused(silent.map((one) => `${one.provider}: ${one.reason}`).join('; '));
      }
    });

  provider
    .command('list')
    .description('the configured providers, their limits, and what they answered today (UTC)')
    .option('--json', 'print JSON', false)
    .action(({ json }: { json: boolean }) =>
      withRuntime(async ({ config, pool, clock }) => {
        const days = await readProviderDay(pool, utcDay(clock.now()));
        print(
          config.providers.map((one) => listed(one, days)),
          json,
        );
      }),
    );
}

/** MMDB files hold numbers that JSON cannot. */
const jsonValue = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

const NO_CALLS: ProviderDay = {
  provider: '',
  budget_used: 0,
  calls: 0,
  failed: 0,
  not_asked: 0,
  company: 0,
  isp: 0,
  unclassified: 0,
  unknown: 0,
  taken: 0,
  mean_ms: null,
};

function listed(settings: ProviderSettings, days: readonly ProviderDay[]) {
  const {
    budget_used,
    provider: _,
    ...today
  } = days.find(({ provider }) => provider === settings.name) ?? NO_CALLS;
  const { requestsPerSecond = null, requestsPerDay = null } = 'timeoutMs' in settings ? settings : {};
  return {
    provider: settings.name,
    kind: settings.kind,
    source: sourceOf(settings),
    ...today,
    requests_per_second: requestsPerSecond,
    requests_per_day: requestsPerDay,
    budget_left: requestsPerDay === null ? null : Math.max(0, requestsPerDay - budget_used),
  };
}

/** Returns a provider's file, or its URL's origin alone: the path or query may hold a token. */
function sourceOf(settings: ProviderSettings): string {
  switch (settings.kind) {
    case 'directory':
      return settings.file ?? 'the sample';
    case 'file':
      return settings.file;
    case 'api':
      return originOf(settings.url ?? readPreset(settings.preset, settings.variables.MAP).request?.url);
    case 'http':
      return originOf(settings.url);
  }
}

const originOf = (url: string | undefined): string =>
  url ? new URL(url.replaceAll('{ip}', '1')).origin : '-';

const WIDTH = 40;

/** The records and the result side by side, and the raw answers below. */
function describe({ ip, providers, result }: TriedChain): string {
  const columns: (readonly [string, object | null])[] = [
    ...providers.map(({ provider, record }) => [provider, record] as const),
    ['result', result],
  ];
  const fields = ['match_type', ...fieldsOf('network', columns), ...fieldsOf('company', columns)];
  const records = fields.map((field) => ({
    field,
    ...Object.fromEntries(columns.map(([name, record]) => [name, shortened(at(record, field))])),
  }));
  const summary = providers.map(({ provider, outcome, counts, duration_ms, reason }) => ({
    provider,
    outcome,
    ms: duration_ms,
    counts: counts ? 'yes' : 'no',
    reason: reason ?? '',
  }));
  const raw = providers.map(({ provider, raw: answer }) =>
    answer === null
      ? `${provider} has no record`
      : `${provider} answered\n${printable(JSON.stringify(answer, jsonValue, 2))}`,
  );
  const end =
    result === null
      ? ['An enrichment would be retried: no answer counts, and not every provider answered.']
      : [];
  return [ip, table(summary), table(records), ...end, ...raw].join('\n\n');
}

const at = (record: object | null, field: string): unknown =>
  field
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], record);

function fieldsOf(
  group: 'network' | 'company',
  columns: readonly (readonly [string, object | null])[],
): string[] {
  const names = columns.flatMap(([, record]) => {
    const fields = at(record, group) as Record<string, unknown> | null | undefined;
    return Object.entries(fields ?? {}).flatMap(([name, value]) =>
      value === null ? [] : [`${group}.${name}`],
    );
  });
  return [...new Set(names)];
}

const shortened = (value: unknown): unknown =>
  typeof value === 'string' && value.length > WIDTH ? `${value.slice(0, WIDTH - 1)}…` : value;
