#!/usr/bin/env node
/** The command `doorplate-client`. Exits 0, 1 (failed), 2 (wrong usage) or 130 (stopped). */
import { parseArgs } from 'node:util';
import { withoutControls } from './cli/csv.ts';
import { enrich } from './cli/enrich.ts';
import type { LogFormat } from './cli/read-log.ts';
import { createClient } from './client.ts';

const HELP = `doorplate-client enrich LOG --format combined|json|csv --out FILE [options]

Looks up each address of a log once and writes a line of CSV for each. LOG may be - for the standard input, or end in .gz.
Stop it with Ctrl-C; the same command goes on where it was stopped.

  --format      combined: Apache's and nginx's log; json: an object a line; csv
  --field       of JSON objects, or the header of a CSV column; by default ip, remote_addr, client_ip and their like
  --out         the file that is written, and resumed
  --concurrency requests under way at once; 8 by default
  --url         of the service; by default DOORPLATE_URL

The key is read from DOORPLATE_API_KEY, so that it stands in no list of processes.
`;

const FORMATS: readonly string[] = ['combined', 'json', 'csv'];

const wrong = (message: string): never => {
  process.stderr.write(`doorplate-client: ${message}\n\n${HELP}`);
  process.exit(2);
};

const read = () => {
  try {
    const text = { type: 'string' } as const;
    const options = {
      format: text,
      field: text,
      out: text,
      concurrency: text,
      url: text,
      help: { type: 'boolean' },
    } as const;
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
};

const main = async (): Promise<void> => {
  const { positionals, values } = read();
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [command, log, ...others] = positionals;
  if (command !== 'enrich' || log === undefined || others.length > 0)
    return wrong('enrich and a log are needed');
  const { format = 'combined', out, field } = values;
  if (!FORMATS.includes(format)) return wrong(`--format is none of ${FORMATS.join(', ')}: ${format}`);
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
  const options = { client, log, format: format as LogFormat, field, out, concurrency };
  const isDone = await enrich({ ...options, signal: stop.signal, terminal: process.stderr });
  if (!isDone) process.exitCode = 130;
};

main().catch((error: unknown) => {
  process.stderr.write(
    `doorplate-client: ${withoutControls(error instanceof Error ? error.message : String(error))}\n`,
  );
  process.exitCode = 1;
});
