import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { allProjections } from '../projections/all.ts';
import { GrantRefused, grantAnalyst, revokeAnalyst } from './analytics/analysts.ts';
import { type ExportOptions, exportView } from './analytics/export-view.ts';
import { UnknownView } from './analytics/views.ts';
import { instant } from './options.ts';
import { print } from './print.ts';
import { Refused, type Session, withRuntime, withSession } from './session.ts';

type ExportCommand = Omit<ExportOptions, 'url' | 'view' | 'signal'> & { readonly json: boolean };

const MAX_WAIT_MS = 30_000;

function rowsFrom(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('not a whole number from 1');
}

/** Adds `doorplate export VIEW`. */
export function addExportCommand(program: Command): void {
  program
    .command('export <view>')
    .description('write a view of the schema analytics to a file, as it is at one moment')
    .addOption(
      new Option('--format <format>', 'of the file').choices(['csv', 'parquet']).makeOptionMandatory(),
    )
    .requiredOption('--out <file>', 'the file; one that is there is replaced')
    .option(
      '--from <time>',
      "ISO 8601; from then on, by the view's first time (docs/data-dictionary.md)",
      instant,
    )
    .option('--to <time>', 'before then', instant)
    .option('--limit <n>', 'at most so many rows, the earliest', rowsFrom)
    .option('--json', 'print JSON', false)
    .action((view: string, { json, out, ...options }: ExportCommand) =>
      withSession(async (session) => {
        await upToDate(session);
        const stopped = new AbortController();
        for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());
        const file = resolve(out);
        const exporting = exportView({
          url: session.databaseUrl,
          view,
          out: file,
          signal: stopped.signal,
          ...options,
        });
        const exported = await exporting.catch((error: unknown) => {
          if (stopped.signal.aborted) throw new Refused('stopped: no file was written');
          throw error instanceof UnknownView ? new Refused(error.message) : error;
        });
        print({ ...exported, format: options.format, file }, json);
      }),
    );
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
