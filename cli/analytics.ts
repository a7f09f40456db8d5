import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { olderProcess } from '../platform/postgres/upgrade-path.ts';
import { allProjections } from '../projections/all.ts';
import { GrantRefused, grantAnalyst, revokeAnalyst } from './analytics/analysts.ts';
import { exportChanges, LoadRefused } from './analytics/export-changes.ts';
import { TargetBusy } from './analytics/export-lock.ts';
import { type ExportOptions, exportView } from './analytics/export-view.ts';
import { UnknownView } from './analytics/views.ts';
import { instant } from './options.ts';
import { print } from './print.ts';
import { type ProgressBar, progressBar } from './progress.ts';
import { Refused, type Session, withRuntime, withSession } from './session.ts';

type ExportCommand = Omit<ExportOptions, 'url' | 'view' | 'signal'> & {
  readonly json: boolean;
  readonly since?: bigint;
};

const MAX_WAIT_MS = 30_000;

function rowsFrom(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('not a whole number from 1');
}

function positionFrom(text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError('not a position: 0, or the one that the load before printed');
}

/** Adds `doorplate export VIEW`. */
export function addExportCommand(program: Command): void {
  program
    .command('export <view>')
    .description('write a view of the schema analytics to a file, as it is at one moment')
    .addOption(
      new Option('--format <format>', 'of the file').choices(['csv', 'parquet']).makeOptionMandatory(),
    )
    .requiredOption('--out <file>', 'the file; one that is there is replaced; with --since a folder')
    .option(
      '--from <time>',
      "ISO 8601; from then on, by the view's first time (docs/reference/data-dictionary.md)",
      instant,
    )
    .option('--to <time>', 'before then', instant)
    .option('--limit <n>', 'at most so many rows, the earliest', rowsFrom)
    .addOption(
      new Option(
        '--since <position>',
        'an incremental load: the rows that changed after this position, which the load before printed; 0: all',
      )
        .argParser(positionFrom)
        .conflicts(['from', 'to', 'limit']),
    )
    .option('--json', 'print JSON', false)
    .action(async (view: string, { json, out, since, ...options }: ExportCommand, command: Command) => {
      if (since !== undefined && options.format !== 'parquet')
        command.error("error: option '--since' needs '--format parquet'");
      await withSession(async (session) => {
        await upToDate(session);
        const stopped = new AbortController();
        for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());
        const of = { url: session.databaseUrl, view, out: resolve(out), signal: stopped.signal };
        const exporting = since === undefined ? whole(of, options) : changed(of, since, session);
        const exported = await exporting.catch((error: unknown) => {
          if (stopped.signal.aborted) throw new Refused('stopped: no file was written');
          const isRefusal = [UnknownView, LoadRefused, TargetBusy].some((kind) => error instanceof kind);
          throw isRefusal ? new Refused((error as Error).message) : error;
        });
        print(exported, json);
      });
    });
}

type Target = Required<Pick<ExportOptions, 'url' | 'view' | 'out' | 'signal'>>;

async function whole(of: Target, options: Omit<ExportOptions, keyof Target>): Promise<object> {
  return { ...(await exportView({ ...of, ...options })), format: options.format, file: of.out };
}

async function changed(of: Target, since: bigint, { pool }: Session): Promise<object> {
  const older = await olderProcess(pool);
  if (older !== null)
    throw new Refused(`older_process: ${older} runs, which records no positions: replace it first`);
  let bar = null as ProgressBar | null;
  const onRows = (done: number, total: number): void => {
    bar ??= progressBar(`exporting ${of.view}`, total);
    bar.update(done);
  };
  try {
    return { ...(await exportChanges({ ...of, since, onRows })), format: 'parquet' };
  } finally {
    bar?.end();
  }
}

async function upToDate({ store, progress }: Session): Promise<void> {
  const names = allProjections.map(({ name }) => name);
  if (await progress.reached(names, await store.head(), MAX_WAIT_MS)) return;
  process.stderr.write('doorplate: a read model is behind (doorplate projection list): so is the file\n');
}

/** Adds `doorplate analytics grant|revoke`. */
export function addAnalyticsCommands(program: Command): void {
  const analytics = program
    .command('analytics')
    .description('who may read the views of the schema analytics');

  analytics
    .command('grant <user>')
    .description(
      'let a PostgreSQL user read them and nothing else; a new one gets a password, shown this once',
    )
    .option('--json', 'print JSON', false)
    .action((user: string, { json }: { json: boolean }) =>
      withRuntime(async ({ databaseUrl }) => {
        const { granted, notes } = await grantAnalyst(databaseUrl, user).catch(refused);
        print(granted, json);
        for (const note of notes) process.stderr.write(`doorplate: ${note}\n`);
      }),
    );

  analytics
    .command('revoke <user>')
    .description('take it back; a user that grant made is dropped')
    .option('--json', 'print JSON', false)
    .action((user: string, { json }: { json: boolean }) =>
      withRuntime(async ({ databaseUrl }) =>
        print(await revokeAnalyst(databaseUrl, user).catch(refused), json),
      ),
    );
}

function refused(error: unknown): never {
  throw error instanceof GrantRefused ? new Refused(error.message) : error;
}
