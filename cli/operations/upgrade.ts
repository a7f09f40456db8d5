import type { Command } from 'commander';
import type pg from 'pg';
import { loadConfig } from '../../platform/config/config.ts';
import { checkMigrations, migrationSql } from '../../platform/postgres/migrate.ts';
import { IS_ALIVE, RELEASE, statementsOutside } from '../../platform/postgres/upgrade-path.ts';
import { print, table } from '../print.ts';
import { Refused } from '../session.ts';
import { bytesText, countText, durationText } from './problems.ts';
import { openStores, refuseEmptyDatabase } from './stores.ts';

/** Adds `doorplate upgrade check`. */
export function addUpgradeCommands(program: Command): void {
  program
    .command('upgrade')
    .description('what a start of this version does to the database')
    .command('check')
    .description(
      'list the migrations that this version would run, their locks and how long they take; runs none',
    )
    .option('--json', 'print JSON', false)
    .action(async ({ json }: { json: boolean }) => {
      const stores = await openStores(loadConfig(process.env));
      try {
        await refuseEmptyDatabase(stores);
        const plan = await planUpgrade(stores.pool, stores.url);
        if (json) print(plan, true);
        else process.stdout.write(`${page(plan)}\n`);
        if (plan.refusal !== null) throw new Refused(`this version would not start: ${plan.refusal}`);
      } finally {
        await stores.close();
      }
    });
}

/** What one statement of a migration does to a table that has rows. */
interface Step {
  readonly migration: string;
  readonly table: string;
  readonly does: string;
  /** `none`: reads and writes go on. `moment`: they wait for less than half a second at a time. `writes`: they wait to its end. */
  readonly lock: 'none' | 'moment' | 'writes';
  readonly rows: number;
  readonly bytes: number;
  /** Estimated from the rows. */
  readonly seconds: number;
}

interface Plan {
  readonly version: string;
  /** Versions of the processes that run. */
  readonly running: readonly string[];
  readonly migrations: readonly string[];
  readonly steps: readonly Step[];
  readonly seconds: number;
  /** Whether processes may be replaced one by one. */
  readonly rolling: boolean;
  readonly refusal: string | null;
}

async function planUpgrade(pool: pg.Pool, url: string): Promise<Plan> {
  const { pending, refusal } = await checkMigrations(url);
  const { rows: sizes } = await pool.query<{ table: string; rows: number; bytes: string }>(
    `select n.nspname || '.' || c.relname as table, greatest(c.reltuples, 0)::float8 as rows,
            pg_total_relation_size(c.oid) as bytes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and n.nspname in ('eventlog', 'read', 'work')`,
  );
  const { rows: running } = await pool.query<{ release: string }>(
    `select distinct coalesce(p.release, 'before 0.2.0') as release from work.process p
     where p.role <> 'command'
       and ${IS_ALIVE}`,
  );
  const sizeOf = new Map(sizes.map(({ table: name, rows, bytes }) => [name, { rows, bytes: Number(bytes) }]));
  const steps = pending.flatMap((migration) =>
    statementsOf(migrationSql(migration)).flatMap((statement) => {
      const found = stepOf(statement);
      const size = found && sizeOf.get(found.table);
      // A table that these migrations make has no rows.
      if (!found || !size) return [];
      const seconds = found.scans ? Math.ceil(size.rows / ROWS_A_SECOND) : 0;
      return [{ migration, table: found.table, does: found.does, lock: found.lock, ...size, seconds }];
    }),
  );
  return {
    version: RELEASE,
    running: running.map(({ release }) => release),
    migrations: pending,
    steps,
    seconds: steps.reduce((sum, step) => sum + step.seconds, 0),
    rolling: refusal === null,
    refusal,
  };
}

/** Of an index on the log, with `npm run bench -- migrations`: 5,000,000 rows took 7.6 s on two cores; here with a margin. */
const ROWS_A_SECOND = 300_000;

/** Splits a migration into its statements, without comments and the bodies of functions. */
export const statementsOf = (sql: string): string[] =>
  (statementsOutside(sql) ?? sql.replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''").split(/;\s*$/m))
    .map((statement) => withoutComments(statement))
    .filter((statement) => statement !== '');

const withoutComments = (statement: string): string =>
  statement
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
    .trim();

type Kind = Pick<Step, 'table' | 'does' | 'lock'> & { readonly scans: boolean };

/** Statements that make new things, or say something of things, touch no table that has rows. */
const HARMLESS =
  /^(create (or replace )?(function|view|schema|extension|table|unlogged table|sequence|type)|comment on|grant|revoke|set |reset |insert into|alter view|drop view|drop function)/i;

/** Returns what a statement does to its table; null if it touches none. @throws Error on one that is not known */
export function stepOf(statement: string): Kind | null {
  const text = statement.replaceAll(/\s+/g, ' ');
  if (HARMLESS.test(text)) return null;
  const index =
    /^create (unique )?index (concurrently )?(?:if not exists )?(\w+) on (?:only )?([\w.]+)/i.exec(text);
  if (index) {
    const [, , concurrently, name = '', table = ''] = index;
    return { table, does: `builds the index ${name}`, lock: concurrently ? 'none' : 'writes', scans: true };
  }
  const dropped = /^drop index (concurrently )?(?:if exists )?([\w.]+)/i.exec(text);
  if (dropped) return { table: dropped[2] ?? '', does: 'drops an index', lock: 'moment', scans: false };
  const altered = /^alter table (?:only )?([\w.]+) (.+)$/i.exec(text);
  if (altered) {
    const [, table = '', what = ''] = altered;
    const rewrites = /\balter column \w+ (set data )?type\b/i.test(what);
    const checks =
      /\b(set not null|add (constraint \w+ )?(check|foreign key|unique|primary key))\b/i.test(what) &&
      !/not valid/i.test(what);
    return {
      table,
      does: verbOf(what),
      lock: rewrites || checks ? 'writes' : 'moment',
      scans: rewrites || checks,
    };
  }
  const changed = /^(update|delete from|truncate(?: table)?) ([\w.]+)/i.exec(text);
  if (changed) {
    return {
      table: changed[2] ?? '',
      does: `changes rows (${changed[1]?.toLowerCase()})`,
      lock: 'moment',
      scans: true,
    };
  }
  const gone = /^drop table (?:if exists )?([\w.]+)/i.exec(text);
  if (gone) return { table: gone[1] ?? '', does: 'drops the table', lock: 'moment', scans: false };
  throw new Error(`not known what this statement of a migration does: ${text.slice(0, 80)}`);
}

const verbOf = (what: string): string => {
  const [verb = '', object = ''] = what.split(' ');
  const added = what.match(/\badd column \w+/gi)?.length ?? 0;
  return added > 0
    ? `adds ${added} ${added === 1 ? 'column' : 'columns'}`
    : `${verb} ${object}`.toLowerCase();
};

const LOCKS: Readonly<Record<Step['lock'], string>> = {
  none: 'none',
  moment: 'under half a second',
  writes: 'writes wait',
};

function page({ version, running, migrations, steps, seconds, rolling, refusal }: Plan): string {
  if (migrations.length === 0)
    return `Doorplate ${version} would run no migration: it may start at any time.`;
  const rows = steps.map(({ migration, table: name, does, lock, rows: count, bytes, seconds: takes }) => ({
    migration,
    table: name,
    does,
    lock: LOCKS[lock],
    rows: countText(Math.round(count)),
    size: bytesText(bytes),
    takes: takes === 0 ? 'a moment' : `about ${durationText(takes * 1_000)}`,
  }));
  return [
    `Doorplate ${version} would run ${migrations.length} migrations at its first start: ${migrations.join(', ')}.`,
    table(rows),
    seconds === 0
      ? 'They take a few seconds.'
      : `They take about ${durationText(seconds * 1_000)}, while the other processes go on.`,
    `Running now: ${running.length === 0 ? 'no process' : `version ${running.join(', ')}`}.`,
    ...(refusal === null && rolling
      ? ['Rolling: processes may be replaced one after the other (docs/operations.md, Upgrading).']
      : []),
  ].join('\n\n');
}
