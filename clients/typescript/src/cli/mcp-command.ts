/** `doorplate-client mcp`. Its packages are optional and are loaded here alone. */
import { readFileSync } from 'node:fs';
import { type Command, clientFor, parsed, stopSignal, WrongUsage } from './command.ts';

const HELP = `doorplate-client mcp [options]

Serves the Model Context Protocol on the standard input and output: an agent's host starts it, and its agents look up
addresses and read sessions and usage. It ends with its input.

  --allow-reveals lets agents reveal sessions, which costs a unit for each that has any data
  --url           of the service; by default DOORPLATE_URL
`;

const OPTIONS = { 'allow-reveals': { type: 'boolean' } } as const;

interface Package {
  readonly version: string;
  /** What the service's own copy of the package names as optional peers. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** @throws Error that says what to install */
const loadServer = async (manifest: Package): Promise<typeof import('./mcp-server.ts')> => {
  try {
    return await import('./mcp-server.ts');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const wanted = manifest.optionalDependencies ?? manifest.peerDependencies ?? {};
    const missing = Object.entries(wanted).map(([name, version]) => `${name}@${version}`);
    throw new Error(`mcp needs optional packages that are not installed: npm install ${missing.join(' ')}`);
  }
};

const run = async (args: readonly string[]): Promise<number> => {
  const { positionals, values } = parsed(args, OPTIONS);
  if (positionals.length > 1) throw new WrongUsage('mcp takes options alone');
  const signal = stopSignal();
  // A host waits a minute for an answer: a refusal reaches the agent before that.
  const client = clientFor(values.url, { retries: 2 });
  const manifest: Package = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const { serve } = await loadServer(manifest);
  await serve({
    client,
    version: manifest.version,
    allowReveals: values['allow-reveals'] === true,
    signal,
    terminal: process.stderr,
  });
  return 0;
};

export const mcpCommand: Command = { help: HELP, options: OPTIONS, run };
