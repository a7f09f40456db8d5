#!/usr/bin/env node
/** The command `doorplate-client`. Exits 0, 1 (failed), 2 (wrong usage) or 130 (stopped). */
import { parseArgs } from 'node:util';
import { withoutControls } from './cli/csv.ts';
import { enrich } from './cli/enrich.ts';
import { FORMATS, type FormatName, type IpFrom } from './cli/formats.ts';
import { createClient } from './client.ts';

const HELP = `doorplate-client enrich LOG… --out FILE [options]

Looks up each address of logs once and writes a line of CSV for each. A LOG is a file, a folder of files, or - for the
standard input; gzip, zstd and UTF-16 are recognised, and so is the format. Results go to FILE.part, which gets its name
at the end. Stop it with Ctrl-C; the same command goes on where it was stopped, and takes up a finished FILE.

  --format      ${FORMATS.join(', ')}; by default what the first lines look like
  --field       the address's path in JSON objects, as request.remote_ip, or its column
  --ip-from     first: the line's own address; last: the X-Forwarded-For at its end; by default the last where the first is
                not public
  --out         the file that is written, and continued
  --force       replaces a FILE that holds something else
  --summary     a file of the visits of each company
  --dry-run     says how many addresses there are, what the key allows and how long it takes, and ends
  --follow      goes on with what is appended to LOG, also when it is rotated; writes to FILE directly
  --verbose     shows each line without an address
  --concurrency requests under way at once; 8 by default
  --url         of the service; by default DOORPLATE_URL

The key is read from DOORPLATE_API_KEY, so that it stands in no list of processes.
`;

const wrong = (message: string): never => {
  process.stderr.write(`doorplate-client: ${message}\n\n${HELP}`);
  process.exit(2);
};

const read = () => {
  try {
    const text = { type: 'string' } as const;
    const flag = { type: 'boolean' } as const;
    const options = {
      format: text,
      field: text,
      'ip-from': text,
      out: text,
      force: flag,
      summary: text,
      'dry-run': flag,
      follow: flag,
      verbose: flag,
      concurrency: text,
      url: text,
      help: flag,
    } as const;
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
};

const isFormat = (name: string): name is FormatName => FORMATS.some((format) => format === name);

const isIpFrom = (text: string): text is IpFrom => text === 'first' || text === 'last';

const main = async (): Promise<void> => {
  const { positionals, values } = read();
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [command, ...logs] = positionals;
  if (command !== 'enrich' || logs.length === 0) return wrong('enrich and a log are needed');
  const { format, out, 'ip-from': ipFrom } = values;
  if (format !== undefined && !isFormat(format))
    return wrong(`--format is none of ${FORMATS.join(', ')}: ${format}`);
  if (ipFrom !== undefined && !isIpFrom(ipFrom))
    return wrong(`--ip-from is neither first nor last: ${ipFrom}`);
  if (out === undefined) return wrong('--out is missing');
  const concurrency = values.concurrency === undefined ? undefined : Number(values.concurrency);
  if (concurrency !== undefined && !(concurrency >= 1)) return wrong('--concurrency must be 1 or more');
  const baseUrl = values.url ?? process.env.DOORPLATE_URL;
  const apiKey = process.env.DOORPLATE_API_KEY;
  if (baseUrl === undefined) return wrong('--url or DOORPLATE_URL is missing');
  if (apiKey === undefined) return wrong('DOORPLATE_API_KEY is missing');

  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const client = createClient({ baseUrl, apiKey });
  const { field, force, summary, 'dry-run': dryRun, follow, verbose } = values;
  const chosen = { format, field, ipFrom, force, summary, dryRun, follow, verbose, concurrency };
  const isDone = await enrich({
    ...chosen,
    client,
    logs,
    out,
    signal: stop.signal,
    terminal: process.stderr,
  });
  if (!isDone) process.exitCode = 130;
};

main()
  .catch((error: unknown) => {
    process.stderr.write(
      `doorplate-client: ${withoutControls(error instanceof Error ? error.message : String(error))}\n`,
    );
    process.exitCode = 1;
  })
  .finally(() => {
    // The standard input, or a followed file, would keep the process alive.
    process.exit();
  });
