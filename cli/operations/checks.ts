/** The checks of `doorplate doctor`. Each says what it found and, where that is wrong, what to do. */
import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type pg from 'pg';
import { NothingThere } from '../../bin/runtime.ts';
import type { StoreState } from '../../operations/facts.ts';
import { bytesText, durationText } from '../../operations/texts.ts';
import { CLOCK_AHEAD_MS, DISK } from '../../operations/thresholds.ts';
import { type Config, ConfigError, loadConfig } from '../../platform/config/config.ts';
import { openDataFolder } from '../../platform/config/data-folder.ts';
import { keysThatDoNotOpen } from '../../platform/crypto/keyring.ts';
import { keyFileIn, loadMasterKey } from '../../platform/crypto/master-key.ts';
import { checkMigrations } from '../../platform/postgres/migrate.ts';
import { NEEDS_DIRECT } from '../../platform/postgres/pool.ts';
import { type ProcessState, readProcesses } from '../../queries/processes.ts';
import { bad, type Check, good, type Result } from './check-result.ts';
import { checkCountries, checkExtraCa, checkProviders } from './file-checks.ts';
import { checkNames, checkPorts, checkProxy, findProcessHere } from './network-checks.ts';
import { readDisk } from './state.ts';
import { type OpenStores, openStores, readStores } from './stores.ts';

/** Runs the checks one after the other. `begins` is called with the name of each before it runs. */
export async function* examine(
  env: NodeJS.ProcessEnv,
  begins: (name: string) => void,
): AsyncGenerator<Check> {
  const run: RunCheck = async (name, check) => {
    begins(name);
    try {
      return { name, ...(await check()) };
    } catch (error) {
      return {
        name,
        ...bad((error as Error).message, 'see the message; docs/configuration.md has the variables'),
      };
    }
  };

  begins('configuration');
  let config: Config;
  try {
    config = loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.lines) yield { name: 'configuration', ...bad(line, formOf(line)) };
    return;
  }
  yield { name: 'configuration', ...judgeConfig(config) };
  yield await run('data folder', () => checkFolder(config));
  yield await run('disk', () => checkDisk(config));
  yield await run('country data', () => checkCountries(config));
  yield await run('providers', () => checkProviders(config));
  if (config.WEBHOOK_EXTRA_CA_FILE !== undefined) yield await run('webhook CA', () => checkExtraCa(config));
  yield await run('names', () => checkNames(config));

  begins('stores');
  const processes = yield* examineStores(config, run);
  const here = await findProcessHere(config, processes);
  yield await run('ports', () => checkPorts(config, here));
  yield await run('proxy', () => checkProxy(config, here, processes));
}

type RunCheck = (name: string, check: () => Promise<Result> | Result) => Promise<Check>;

/** @returns the running processes of this installation; null: PostgreSQL cannot be asked */
async function* examineStores(
  config: Config,
  run: RunCheck,
): AsyncGenerator<Check, readonly ProcessState[] | null> {
  let stores: OpenStores;
  try {
    stores = await openStores(config);
  } catch (error) {
    const name = 'postgresql';
    if (error instanceof NothingThere) {
      yield { name, ...good('no data yet: the first start makes the database') };
      return [];
    }
    yield { name, ...bad((error as Error).message, 'see docs/runbook.md, When something is wrong') };
    return null;
  }
  try {
    for (const state of await readStores(config, stores))
      yield { name: state.kind, ...judgeStore(state, config) };
    const { pool, url } = stores;
    const isUp = await pool.query('select').then(
      () => true,
      () => false,
    );
    if (!isUp) return null;
    // A database without tables has no processes.
    const processes = await readProcesses(pool).catch(() => []);
    yield await run('tables', () => checkTables(pool, url));
    yield await run('master key', () => checkMasterKey(config, pool));
    yield await run('clock', () => checkClock(pool, processes));
    return processes;
  } finally {
    await stores.close();
  }
}

/** The right form of each variable that people get wrong most. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/^PUBLIC_URL /, 'PUBLIC_URL=https://doorplate.example.com'],
  [/^DATABASE_URL /, 'DATABASE_URL=postgresql://user:password@host:5432/doorplate'],
  [/^EVENTSTORE_URL /, 'EVENTSTORE_URL=esdb://host:2113?tls=false'],
  [/^MASTER_KEY_PREVIOUS is set/, 'set MASTER_KEY too'],
  [/^MASTER_KEY/, 'openssl rand -base64 32 makes one; put back the one that the data was made with'],
  [/^(TRUSTED_PROXIES|WEBHOOK_ALLOW_NETWORKS) /, 'such as TRUSTED_PROXIES=127.0.0.1/32,10.0.0.0/8'],
  [/^(OPS_)?PORT /, 'a whole number from 0 to 65535, such as PORT=3000'],
  [/^(PUBLIC|OPS)_HOSTS /, 'such as PUBLIC_HOSTS=www.example.com,old.example.com'],
  [/^LOG_LEVEL /, 'one of trace, debug, info, warn, error, fatal, silent'],
  [/^ENRICHMENT_PROVIDERS /, 'such as ENRICHMENT_PROVIDERS=directory,ipinfo'],
  [/^ENRICHMENT_HTTP_URL /, 'such as ENRICHMENT_HTTP_URL=https://api.example.com/v1/{ip}'],
  [
    /^(ENRICHMENT_DIRECTORY|COUNTRY_MMDB|WEBHOOK_EXTRA_CA_FILE|\w+_FILE|\w+_MAP) /,
    'the path of a file that the service may read',
  ],
  [
    /^OPERATOR_WEBHOOK_SECRET is not whsec_|^OPERATOR_WEBHOOK_URL is set/,
    'OPERATOR_WEBHOOK_SECRET=whsec_$(openssl rand -base64 32)',
  ],
  [/^OPERATOR_WEBHOOK_URL is http/, 'OPERATOR_WEBHOOK_URL=https://…, or OPERATOR_WEBHOOK_ALLOW_PRIVATE=1'],
  [/^OPERATOR_WEBHOOK_SECRET is set/, 'OPERATOR_WEBHOOK_URL=https://alerts.example.com/doorplate'],
  [/^OPERATOR_WEBHOOK_URL /, 'OPERATOR_WEBHOOK_URL=https://alerts.example.com/doorplate'],
  [/^(OPERATOR_WEBHOOK_ALLOW_PRIVATE|WEBHOOK_ALLOW_HTTP) /, '1, or leave it out'],
  [/^DNS_SERVERS /, 'such as DNS_SERVERS=10.0.0.53,10.0.1.53:5353'],
  [/^\w+ is not a whole number/, 'a whole number, such as 100'],
];

const formOf = (line: string): string =>
  FORMS.find(([pattern]) => pattern.test(line))?.[1] ?? 'docs/configuration.md, Variables, has its form';

function judgeConfig(config: Config): Result {
  if (config.gone.length > 0) {
    return bad(
      `set, but this version has no such setting: ${config.gone.join(', ')}`,
      'remove it from the environment',
    );
  }
  const unsafe = config.unsafe.length === 0 ? '' : `; for development alone: ${config.unsafe.join(', ')}`;
  return good(`every variable has a right value${unsafe}`);
}

function checkFolder({ DATA_DIR }: Config): Result {
  const folder = resolve(DATA_DIR);
  if (!existsSync(folder)) {
    const parent = statSync(dirname(folder), { throwIfNoEntry: false });
    if (parent?.isDirectory()) return good(`${folder} will be made by the first start`);
    return bad(
      `${folder} cannot be made: ${dirname(folder)} is missing`,
      `mkdir -p ${dirname(folder)}, or set DATA_DIR`,
    );
  }
  try {
    return good(`${openDataFolder(folder)} can be changed by its owner alone`);
  } catch (error) {
    const { message } = error as Error;
    return bad(
      message,
      message.split('then: ')[1] ?? `chown the folder to the service's user, or set DATA_DIR`,
    );
  }
}

async function checkDisk(config: Config): Promise<Result> {
  const { free_bytes, size_bytes } = await readDisk(config);
  if (free_bytes === null || size_bytes === null) return good('the disk cannot be seen from here');
  const detail = `${bytesText(free_bytes)} of ${bytesText(size_bytes)} are free`;
  if (free_bytes / size_bytes >= DISK.warning.share) return good(detail);
  return bad(detail, 'make room, or move DATA_DIR to a larger disk: a full disk stops the store');
}

const MIN_POSTGRES_MAJOR = 14;

function judgeStore(state: StoreState, config: Config): Result {
  const { kind, version, latency_ms, error, read_only, supported_until } = state;
  const variable = kind === 'eventstoredb' ? 'EVENTSTORE_URL' : 'DATABASE_URL';
  if (error !== null) {
    if (error.includes(NEEDS_DIRECT)) return bad(error, 'name PostgreSQL itself in DATABASE_URL');
    return bad(
      error,
      `start the server, or mend ${config.DATABASE_URL || kind === 'eventstoredb' ? variable : 'DATA_DIR'}`,
    );
  }
  const detail = `version ${version ?? 'unknown'}, answers in ${latency_ms} ms`;
  if (read_only)
    return bad(
      `${detail}, but accepts no writes`,
      `name the primary in ${variable}, or end its read-only mode`,
    );
  if (kind === 'postgresql' && Number.parseInt(version ?? '', 10) < MIN_POSTGRES_MAJOR) {
    return bad(detail, `PostgreSQL ${MIN_POSTGRES_MAJOR} or later is needed`);
  }
  if (supported_until !== null && Date.parse(supported_until) < Date.now()) {
    // It works: the vendor's support alone has ended.
    return good(`${detail}; its vendor's support ended on ${supported_until}`);
  }
  return good(supported_until === null ? detail : `${detail}, supported until ${supported_until}`);
}

async function checkTables(pool: pg.Pool, url: string): Promise<Result> {
  const { rows } = await pool.query<{ encoding: string; may_create: boolean; user: string }>(
    `select current_setting('server_encoding') as encoding, current_user as user,
            has_database_privilege(current_user, current_database(), 'create') as may_create`,
  );
  const { encoding = '', may_create = false, user = '' } = rows[0] ?? {};
  if (encoding !== 'UTF8')
    return bad(`the database is ${encoding}`, `create database doorplate encoding 'UTF8' template template0`);
  const { pending, refusal, recorded } = await checkMigrations(url);
  if (recorded.length === 0 && !may_create) {
    return bad(`the user ${user} may not make schemas`, `grant create on database … to ${user}`);
  }
  if (refusal !== null) return bad(refusal, 'docs/backup-and-upgrade.md, Upgrading');
  if (recorded.length === 0) return good('no tables yet: the first start makes them');
  if (pending.length === 0) return good('as this version has them');
  return good(`the next start runs ${pending.length} migrations (doorplate upgrade check)`);
}

async function checkMasterKey(config: Config, pool: pg.Pool): Promise<Result> {
  const dataDir = resolve(config.DATA_DIR);
  const source = config.MASTER_KEY ? 'MASTER_KEY' : keyFileIn(dataDir);
  const { rows } = await pool.query<{ made: boolean }>(
    `select to_regclass('work.keyring') is not null as made`,
  );
  const isEmpty = !rows[0]?.made || (await pool.query('select from work.keyring limit 1')).rowCount === 0;
  if (!config.MASTER_KEY && !existsSync(source)) {
    if (isEmpty) return good(`${source} will be made by the first start`);
    return bad(
      `${source} is missing, and the database has keys that it sealed`,
      `put ${source} back from its backup, or set MASTER_KEY`,
    );
  }
  if (isEmpty) return good(`${source} has sealed nothing yet`);
  const closed = await keysThatDoNotOpen(pool, loadMasterKey(config, dataDir));
  if (closed.length === 0) return good(`${source} opens what is sealed in the database`);
  return bad(
    `${source} is not the key that this database is sealed under: it does not open ${closed.length} keys (${closed.slice(0, 3).join(', ')})`,
    'put back the last key from your backup: without it nothing that is sealed can be read (docs/runbook.md, Changing the master key)',
  );
}

/** Compares this machine's clock with PostgreSQL's and with those of the running processes. */
async function checkClock(pool: pg.Pool, processes: readonly ProcessState[]): Promise<Result> {
  const before = Date.now();
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
  const aheadMs = (before + Date.now()) / 2 - (rows[0]?.now.getTime() ?? before);
  const clocks = [
    { who: "PostgreSQL's clock", ms: -aheadMs },
    ...processes.map(({ id, role, clock_ahead_ms }) => ({
      who: `the clock of process ${id} (${role})`,
      ms: clock_ahead_ms,
    })),
  ];
  const off = clocks.filter(({ ms }) => Math.abs(ms) >= CLOCK_AHEAD_MS);
  const agreeing = clocks.length - off.length;
  if (off.length === 0)
    return good(`agrees with PostgreSQL${processes.length === 0 ? '' : ' and the running processes'}`);
  const others =
    agreeing === 0
      ? ''
      : `, with which ${agreeing} other ${agreeing === 1 ? 'clock agrees' : 'clocks agree'}`;
  return bad(
    off
      .map(
        ({ who, ms }) =>
          `${who} is ${durationText(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} this machine's${others}`,
      )
      .join('; '),
    'synchronise the clocks (chrony, systemd-timesyncd); docs/runbook.md, Clocks',
  );
}
