#!/usr/bin/env node
/** The command `doorplate-client`. Exits 0, 1 (failed, also for an address), 2 (wrong usage) or 130 (stopped). */
import { parseArgs } from 'node:util';
import { type Command, SHARED_OPTIONS, WrongUsage } from './cli/command.ts';
import { withoutControls } from './cli/csv.ts';
import { enrichCommand } from './cli/enrich-command.ts';
import { mcpCommand } from './cli/mcp-command.ts';
import { verifyCommand } from './cli/verify-command.ts';

/** By name, in the order of the help. */
const COMMANDS = new Map<string, Command>([
  ['enrich', enrichCommand],
  ['verify', verifyCommand],
  ['mcp', mcpCommand],
]);

const KEY_HELP = '\nThe key is read from DOORPLATE_API_KEY, so that it stands in no list of processes.\n';

/** Of one command, or of all. */
const helpOf = (command: Command | undefined): string =>
  `${(command ? [command] : [...COMMANDS.values()]).map(({ help }) => help).join('\n')}${KEY_HELP}`;

const main = async (): Promise<number> => {
  const args = process.argv.slice(2);
  // Options may stand before the command's name, and those with a value are known by their definition alone.
  const options = Object.assign({}, SHARED_OPTIONS, ...[...COMMANDS.values()].map((one) => one.options));
  const { positionals, values } = parseArgs({ args, options, allowPositionals: true, strict: false });
  const command = COMMANDS.get(positionals[0] ?? '');
  if (values.help) {
    process.stdout.write(helpOf(command));
    return 0;
  }
  try {
    if (command === undefined)
      throw new WrongUsage(`a command is needed: ${[...COMMANDS.keys()].join(' or ')}`);
    return await command.run(args);
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
    process.stderr.write(`doorplate-client: ${error.message}\n\n${helpOf(command)}`);
    return 2;
  }
};

main()
  .catch((error: unknown) => {
    process.stderr.write(
      `doorplate-client: ${withoutControls(error instanceof Error ? error.message : String(error))}\n`,
    );
    return 1;
  })
  .then((code) => {
    // The standard input, or a followed file, would keep the process alive.
    process.exit(code);
  });
