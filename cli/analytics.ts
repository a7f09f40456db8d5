import type { Command } from 'commander';
import { GrantRefused } from '../analytics/allowed-statements.ts';
import { grantAnalyst, revokeAnalyst } from '../analytics/analysts.ts';
import { print } from './print.ts';
import { Refused, withRuntime } from './session.ts';

/** Adds `doorplate analytics grant|revoke`. */
export const addAnalyticsCommands = (program: Command): void => {
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
};

const refused = (error: unknown): never => {
  throw error instanceof GrantRefused ? new Refused(error.message) : error;
};
