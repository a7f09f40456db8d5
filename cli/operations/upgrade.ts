import type { Command } from 'commander';
import type pg from 'pg';
import { loadConfig } from '../../platform/config/config.ts';
import { checkMigrations } from '../../platform/postgres/migrate.ts';
import { IS_ALIVE, RELEASE } from '../../platform/postgres/upgrade-path.ts';
import { print } from '../print.ts';
import { Refused } from '../session.ts';
import { openStores, refuseEmptyDatabase } from './stores.ts';

/** Adds `doorplate upgrade check`. */
export function addUpgradeCommands(program: Command): void {
  program
    .command('upgrade')
    .description('what a start of this version does to the database')
    .command('check')
    .description(
      'list the migrations that this version would run, and say whether processes may be replaced one by one; runs none',
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

interface Plan {
  readonly version: string;
  /** Versions of the processes that run. */
  readonly running: readonly string[];
  readonly migrations: readonly string[];
  /** Whether processes may be replaced one by one. */
  readonly rolling: boolean;
  readonly refusal: string | null;
}

async function planUpgrade(pool: pg.Pool, url: string): Promise<Plan> {
  const { pending, refusal } = await checkMigrations(url);
  const { rows: running } = await pool.query<{ release: string }>(
    `select distinct coalesce(p.release, 'before 0.2.0') as release from work.process p
     where p.role <> 'command'
       and ${IS_ALIVE}`,
  );
  return {
    version: RELEASE,
    running: running.map(({ release }) => release),
    migrations: pending,
    rolling: refusal === null,
    refusal,
  };
}

function page({ version, running, migrations, rolling }: Plan): string {
  if (migrations.length === 0)
    return `Doorplate ${version} would run no migration: it may start at any time.`;
  return [
    `Doorplate ${version} would run ${migrations.length} migrations at its first start: ${migrations.join(', ')}.`,
    `Running now: ${running.length === 0 ? 'no process' : `version ${running.join(', ')}`}.`,
    ...(rolling
      ? ['Rolling: processes may be replaced one after the other (docs/backup-and-upgrade.md, Upgrading).']
      : []),
  ].join('\n\n');
}
