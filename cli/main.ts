import { Command, CommanderError, Option } from 'commander';
import type { Role } from '../bin/serve.ts';
import { ConfigError } from '../platform/config/config.ts';
import { addAnalyticsCommands, addExportCommand } from './analytics.ts';
import { addAuditCommands } from './audit.ts';
import { addEventsCommands } from './events.ts';
import { addKeyCommands, addMasterKeyCommands } from './key.ts';
import { addPartnerCommands } from './partner.ts';
import { printable } from './print.ts';
import { addLookupCommand, addProviderCommands } from './provider.ts';
import { Refused } from './session.ts';
import { addProjectionCommands, addStoreCommands } from './store.ts';
import { addUserCommands } from './user.ts';

const REFUSED = 1;
const WRONG_USAGE = 2;

/** Runs the command `doorplate` and ends the process if it failed. */
export async function main(argv: readonly string[]): Promise<void> {
  const code = await run(argv);
  if (code !== 0) process.exit(code);
}

/** Runs a command. @returns its exit code: 0, 1 (refused or failed), 2 (wrong usage or configuration) */
export async function run(argv: readonly string[]): Promise<number> {
  const program = commandLine();
  for (const command of allCommands(program)) command.exitOverride();
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    return report(error);
  }
}

/** Builds all commands with their options. */
export function commandLine(): Command {
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
    .action(async ({ role }: { role: Role }) => (await import('../bin/serve.ts')).serve(role, process.env));
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
}

export const allCommands = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(allCommands),
];

/** Prints what went wrong, one line each. @returns the exit code */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const lines =
    error instanceof ConfigError ? error.lines : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) process.stderr.write(`doorplate: ${printable(line)}\n`);
  if (!(error instanceof Refused || error instanceof ConfigError) && process.env.LOG_LEVEL === 'debug') {
    process.stderr.write(`${printable((error as Error).stack ?? '')}\n`);
  }
  return error instanceof ConfigError ? WRONG_USAGE : REFUSED;
}
