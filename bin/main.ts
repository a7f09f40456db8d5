import { Command, CommanderError, Option } from 'commander';
import { ConfigError } from '../platform/config.ts';
import { addAnalyticsCommands } from './cli/analytics.ts';
import { addAuditCommands } from './cli/audit.ts';
import { addEventsCommands } from './cli/events.ts';
import { addExportCommand } from './cli/export.ts';
import { addKeyCommands } from './cli/key.ts';
import { addMasterKeyCommands } from './cli/keys.ts';
import { addLookupCommand } from './cli/lookup.ts';
import { addPartnerCommands } from './cli/partner.ts';
import { addProjectionCommands } from './cli/projection.ts';
import { addProviderCommands } from './cli/provider.ts';
import { Refused } from './cli/session.ts';
import { addStoreCommands } from './cli/store.ts';
import { addUserCommands } from './cli/user.ts';
import type { Role } from './serve.ts';

const REFUSED = 1;
const WRONG_USAGE = 2;

/** Runs the command `doorplate`. Exit codes: 0, 1 (refused or failed), 2 (wrong usage or configuration). */
export const main = async (argv: readonly string[]): Promise<void> => {
  const program = commandLine();
  for (const command of allCommands(program)) command.exitOverride();
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exit(report(error));
  }
};

/** Builds all commands with their options. */
export const commandLine = (): Command => {
  const program = new Command('doorplate')
    .description('Tells which company is behind an IP address or a website visit.')
    .exitOverride()
    .showHelpAfterError();
  program
    .command('serve')
    .description('run the service')
    .addOption(
      new Option('--role <role>', 'what this process does').choices(['all', 'api', 'workers']).default('all'),
    )
    .action(async ({ role }: { role: Role }) => (await import('./serve.ts')).serve(role, process.env));
  addPartnerCommands(program);
  addKeyCommands(program);
  addUserCommands(program);
  addMasterKeyCommands(program);
  addProjectionCommands(program);
  addAuditCommands(program);
  addLookupCommand(program);
  addProviderCommands(program);
  addAnalyticsCommands(program);
  addExportCommand(program);
  addEventsCommands(program);
  addStoreCommands(program);
  return program;
};

export const allCommands = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(allCommands),
];

/** Prints what went wrong, one line each. @returns the exit code */
const report = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const lines =
    error instanceof ConfigError ? error.lines : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) process.stderr.write(`doorplate: ${line}\n`);
  if (!(error instanceof Refused || error instanceof ConfigError) && process.env.LOG_LEVEL === 'debug') {
    process.stderr.write(`${(error as Error).stack}\n`);
  }
  return error instanceof ConfigError ? WRONG_USAGE : REFUSED;
};
