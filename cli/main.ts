import { Command, CommanderError, Option } from 'commander';
import { NothingThere } from '../bin/runtime.ts';
import type { Role } from '../bin/serve.ts';
import { ConfigError } from '../platform/config/config.ts';
import { RELEASE } from '../platform/postgres/upgrade-path.ts';
import { addAnalyticsCommands, addExportCommand } from './analytics.ts';
import { addAuditCommands } from './audit.ts';
import { addCapacityCommand } from './capacity.ts';
import { addDemoCommand } from './demo.ts';
import { addEventsCommands } from './events.ts';
import { addKeyCommands, addMasterKeyCommands } from './key.ts';
import { addDoctorCommand } from './operations/doctor.ts';
import { addStatusCommand } from './operations/status.ts';
import { addUpgradeCommands } from './operations/upgrade.ts';
import { addPartnerCommands } from './partner.ts';
import { addPartnerLifeCommands } from './partner-life.ts';
import { printable } from './print.ts';
import { addPrivacyCommands } from './privacy.ts';
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
    .version(RELEASE, '--version', 'print the version')
    .exitOverride();
  program
    .command('serve')
    .description('run the service')
    .addOption(
      new Option('--role <role>', 'what this process does').choices(['all', 'api', 'workers']).default('all'),
    )
    .action(async ({ role }: { role: Role }) => (await import('../bin/serve.ts')).serve(role, process.env));
  addDemoCommand(program);
  addStatusCommand(program);
  addDoctorCommand(program);
  addCapacityCommand(program);
  addUpgradeCommands(program);
  addPartnerLifeCommands(addPartnerCommands(program));
  addKeyCommands(program);
  addUserCommands(program);
  addMasterKeyCommands(program);
  addProjectionCommands(program);
  addAuditCommands(program);
  addPrivacyCommands(program);
  addLookupCommand(program);
  addProviderCommands(program);
  addAnalyticsCommands(program);
  addExportCommand(program);
  addEventsCommands(program);
  addStoreCommands(program);
  for (const command of allCommands(program)) explain(command);
  return program;
}

/** A call of each command that needs arguments, for its help and for errors. */
const EXAMPLES: Readonly<Record<string, string>> = {
  capacity:
    'capacity --lookups-per-day 1000000 --visits-per-day 200000 --reveals-per-day 5000 --endpoints 20',
  'partner create': 'partner create "Acme Analytics" --keys 20',
  'partner update': 'partner update demo --requests-per-second 100',
  'key create': 'key create --partner demo --name website --expires-at 2027-06-30',
  'key list': 'key list --partner demo',
  'key update': 'key update KEY_ID --new-enrichments-per-day 5000',
  'key revoke': 'key revoke KEY_ID',
  'user create': 'user create --partner demo Ada --role member',
  'user reset-password': 'user reset-password Ada',
  'user remove': 'user remove Ada',
  'projection rebuild': 'projection rebuild --all',
  'audit billing': 'audit billing --partner demo --month 2026-11',
  'audit anchor': 'audit anchor --partner demo >> anchors.jsonl',
  'partner suspend': 'partner suspend acme',
  'partner delete': 'partner delete acme --yes',
  'privacy find': 'privacy find --ip 203.0.113.7',
  'privacy erase': 'privacy erase --ip 203.0.113.7 --dry-run',
  lookup: 'lookup 8.8.8.8',
  'provider try': 'provider try 8.8.8.8',
  'analytics grant': 'analytics grant metabase',
  'analytics revoke': 'analytics revoke metabase',
  export: 'export sessions --format parquet --out sessions.parquet --from 2026-11-01',
  'store dump': 'store dump /backups/2026-11-28',
  'store load': 'store load /backups/2026-11-28',
  completion: 'completion bash > /etc/bash_completion.d/doorplate',
};

/** Returns a command's words after the program's name: `key create`. */
export const pathOf = (command: Command): string =>
  command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();

/** Adds the example to the help, and to what follows an error. */
function explain(command: Command): void {
  const path = pathOf(command);
  const example = EXAMPLES[path];
  const help = `doorplate ${path}${path === '' ? '' : ' '}--help`;
  command.showHelpAfterError(example ? `example: doorplate ${example}\n(${help})` : `(${help})`);
  if (example) command.addHelpText('after', `\nExample:\n  doorplate ${example}`);
}

export const allCommands = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(allCommands),
];

/** Which command shows the names that are there, by the code that a refusal begins with. */
const ADVICE: Readonly<Record<string, string>> = {
  partner_not_found: 'doorplate partner list',
  key_not_found: 'doorplate key list --partner P',
  user_not_found: 'doorplate user list',
  projection_not_found: 'doorplate projection list',
};

function adviceOn(line: string): string {
  const command = ADVICE[line.split(':', 1)[0] ?? ''];
  return command === undefined ? '' : ` (${command} shows those that are there)`;
}

/** Prints what went wrong, one line each. @returns the exit code */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const lines =
    error instanceof ConfigError ? error.lines : [error instanceof Error ? error.message : String(error)];
  for (const line of lines) process.stderr.write(`doorplate: ${printable(line)}${adviceOn(line)}\n`);
  if (
    !(error instanceof Refused || error instanceof NothingThere || error instanceof ConfigError) &&
    process.env.LOG_LEVEL === 'debug'
  ) {
    process.stderr.write(`${printable((error as Error).stack ?? '')}\n`);
  }
  return error instanceof ConfigError ? WRONG_USAGE : REFUSED;
}
