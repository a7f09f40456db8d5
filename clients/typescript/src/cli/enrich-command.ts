/** The options of `doorplate-client enrich`. */
import { type Command, clientFor, parsed, stopSignal, WrongUsage } from './command.ts';
import { enrich } from './enrich.ts';
import { FORMATS, type FormatName, type IpFrom } from './formats.ts';

const HELP = `doorplate-client enrich LOG… --out FILE [options]

Looks up each address of logs once and writes a line of CSV for each. A LOG is a file, a folder of files, or - for the
standard input; gzip, zstd and UTF-16 are recognised, and so is the format. Results go to FILE.part, which gets its name
at the end. Stop it with Ctrl-C; the same command goes on where it was stopped, takes up a finished FILE, and tries
addresses again that failed. It exits with 0, 1 (failed, also where an address did), 2 (wrong usage) or 130 (stopped).

  --format      ${FORMATS.join(', ')}; by default what the first lines look like
  --field       the address's path in JSON objects, as request.remote_ip, or its column in CSV, TSV or W3C
  --ip-from     first: the line's own address; last: the X-Forwarded-For at its end, or in a column of W3C; by default the
                last where the first is not public
  --out         the file that is written, and continued
  --summary     a file of the visits of each company, replaced by each run
  --force       replaces a FILE, or a summary, that holds something else
  --dry-run     says how many addresses there are, what the key allows and how long it takes, and ends
  --follow      goes on with what is appended to LOG, also when it is rotated; writes to FILE directly
  --verbose     shows each line without an address
  --concurrency requests under way at once; 8 by default
  --url         of the service; by default DOORPLATE_URL
`;

const OPTIONS = {
  format: { type: 'string' },
  field: { type: 'string' },
  'ip-from': { type: 'string' },
  out: { type: 'string' },
  force: { type: 'boolean' },
  summary: { type: 'string' },
  'dry-run': { type: 'boolean' },
  follow: { type: 'boolean' },
  verbose: { type: 'boolean' },
  concurrency: { type: 'string' },
} as const;

const isFormat = (name: string): name is FormatName => FORMATS.some((format) => format === name);

const isIpFrom = (text: string): text is IpFrom => text === 'first' || text === 'last';

const run = async (args: readonly string[]): Promise<number> => {
  const { positionals, values } = parsed(args, OPTIONS);
  const [, ...logs] = positionals;
  if (logs.length === 0) throw new WrongUsage('a log is needed');
  const { format, out, 'ip-from': ipFrom } = values;
  if (format !== undefined && !isFormat(format))
    throw new WrongUsage(`--format is none of ${FORMATS.join(', ')}: ${format}`);
  if (ipFrom !== undefined && !isIpFrom(ipFrom))
    throw new WrongUsage(`--ip-from is neither first nor last: ${ipFrom}`);
  if (out === undefined) throw new WrongUsage('--out is missing');
  const concurrency = values.concurrency === undefined ? undefined : Number(values.concurrency);
  if (concurrency !== undefined && !(concurrency >= 1))
    throw new WrongUsage('--concurrency must be 1 or more');
  const client = clientFor(values.url);

  const { field, force, summary, 'dry-run': dryRun, follow, verbose } = values;
  const chosen = { format, field, ipFrom, force, summary, dryRun, follow, verbose, concurrency };
  return enrich({
    ...chosen,
    client,
    logs,
    out,
    signal: stopSignal(),
    terminal: process.stderr,
  });
};

export const enrichCommand: Command = { help: HELP, options: OPTIONS, run };
