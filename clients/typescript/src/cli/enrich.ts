/** `doorplate-client enrich`: the companies behind the addresses of logs. */
import type { Client } from '../client.ts';
import { DoorplateError } from '../errors.ts';
import type { Usage } from '../generated.ts';
import {
  type CompaniesFile,
  FINAL_ERROR,
  finishedBefore,
  openCompaniesFile,
  pathsOf,
} from './companies-file.ts';
import { withoutControls } from './csv.ts';
import { FORMATS, type FormatOptions, isLocal } from './formats.ts';
import { duration, showProgress } from './progress.ts';
import { checkReadable, type Log, logPaths, openLog } from './read-log.ts';
import { checkSummary, countVisit, isSummary, type Visits, writeSummary } from './summary-file.ts';

export interface EnrichOptions extends FormatOptions {
  readonly client: Client;
  /** Files and folders; `-` is the standard input. */
  readonly logs: readonly string[];
  readonly out: string;
  readonly force?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  /** Shows each line without an address. */
  readonly verbose?: boolean | undefined;
  readonly follow?: boolean | undefined;
  /** A file for the visits of each company. */
  readonly summary?: string | undefined;
  readonly concurrency?: number | undefined;
  /** Aborted: what is finished is written, and the run can be continued. */
  readonly signal: AbortSignal;
  readonly terminal: { write(text: string): unknown; readonly isTTY?: boolean | undefined };
}

/** What was read so far. */
interface Reading {
  lines: number;
  without: number;
  notPublic: number;
  /** By public address. */
  readonly visits: Map<string, Visits>;
}

const CONCURRENCY = 8;

/** @returns the exit code: 0, 1 (addresses failed) or 130 (stopped) @throws Error with one line for whatever else ended it */
export const enrich = async (options: EnrichOptions): Promise<number> => {
  const { client, out, terminal, signal, force, summary } = options;
  // Another file of that name in a folder is a log, and stays one.
  const ownSummary = summary !== undefined && (await isSummary(summary)) ? [summary] : [];
  const paths = await logPaths(options.logs, [...pathsOf(out), ...ownSummary]);
  if (options.follow && (paths.length > 1 || paths[0] === '-')) throw new Error('--follow takes one file');
  if (options.follow) await Promise.all(paths.map(checkReadable));
  const before = new Set(await finishedBefore(out, force));
  if (summary !== undefined)
    await checkSummary(summary, [...pathsOf(out), ...paths.filter((path) => path !== '-')], force);
  const reading: Reading = { lines: 0, without: 0, notPublic: 0, visits: new Map() };
  // What may have no end is looked up while it is read.
  const isEndless = options.follow === true || paths.includes('-');
  const addresses = addressesOf(paths, options, reading);
  if (!isEndless) for await (const _ of addresses);
  const usage = await usageUnlessStopped(client, signal);
  if (usage === null) {
    terminal.write('Stopped before the first lookup.\n');
    return 130;
  }
  terminal.write(`${estimate(usage, reading, before, isEndless, options)}\n`);
  if (options.dryRun) return 0;

  const file = await openCompaniesFile(out, { force, direct: options.follow });
  const ended = await lookUpAll(isEndless ? addresses : reading.visits.keys(), file, reading, options);
  terminal.write(
    `${reading.lines} lines, ${reading.notPublic} with addresses that are not public, ${reading.without} without one.\n`,
  );
  if (ended.isStopped || options.follow) terminal.write('Stopped: the same command goes on from here. ');
  if (ended.isStopped && !options.follow) {
    await file.close();
    terminal.write(`The results so far are in ${out}.part.\n`);
    return 130;
  }
  const rows = await file.finish(reading.visits);
  terminal.write(`The results are in ${out}.\n`);
  if (summary !== undefined) await writeSummary(summary, rows, reading.visits);
  if (ended.failed === 0) return 0;
  const [which, again] = ended.failed === 1 ? ['address', 'it'] : ['addresses', 'them'];
  terminal.write(`${ended.failed} ${which} failed: the same command tries ${again} again\n`);
  return 1;
};

/** Reads logs into `reading` and yields each public address once. @throws Error for a log in which no line has an address */
async function* addressesOf(
  paths: readonly string[],
  options: EnrichOptions,
  reading: Reading,
): AsyncGenerator<string> {
  const { terminal, follow, signal } = options;
  for (const path of paths) {
    const log = await openLog(path, options, follow ? { signal } : undefined);
    terminal.write(`${path}: ${log.format.name}\n`);
    let found = 0;
    for await (const { text, read } of log.lines) {
      if (signal.aborted) return;
      if (read === 'header') continue;
      reading.lines += 1;
      if (read === null) {
        reading.without += 1;
        if (options.verbose) terminal.write(`no address: ${shown(text)}\n`);
        continue;
      }
      found += 1;
      if (isLocal(read.ip)) reading.notPublic += 1;
      else if (countVisit(reading.visits, read)) yield read.ip;
    }
    if (found === 0 && !follow) throw nothingIn(log);
  }
}

const shown = (text: string): string => withoutControls(text.length > 200 ? `${text.slice(0, 200)}…` : text);

const nothingIn = ({ path, format, firstLine }: Log): Error =>
  new Error(
    firstLine === ''
      ? `${path} is empty`
      : `${path}: no line has an address when it is read as ${format.name} (--format: ${FORMATS.join(', ')}); it begins: ${shown(firstLine)}`,
  );

const usageUnlessStopped = async (client: Client, signal: AbortSignal): Promise<Usage | null> => {
  if (signal.aborted) return null;
  return client.usage({}, { signal }).catch((error: unknown) => {
    if (signal.aborted) return null;
    throw error;
  });
};

/** What the run will ask for, before it spends anything. */
const estimate = (
  { limits, outcomes }: Usage,
  reading: Reading,
  before: ReadonlySet<string>,
  isEndless: boolean,
  { concurrency = CONCURRENCY }: EnrichOptions,
): string => {
  const { requests_per_second: rate, new_enrichments_per_day: daily } = limits;
  const left = daily === null ? null : Math.max(0, daily - (outcomes.enqueued ?? 0));
  const allowance =
    left === null
      ? 'the key has no daily limit of new addresses'
      : daily === 0
        ? 'the key looks up saved addresses alone'
        : left === 0
          ? `the key's ${daily} new addresses of today are used up`
          : `the key takes ${left} of ${daily} new addresses today`;
  if (isEndless) return `unknown how many addresses and how long; ${allowance}`;
  const finished = [...reading.visits.keys()].filter((ip) => before.has(ip)).length;
  const todo = reading.visits.size - finished;
  const fastest = todo / Math.min(rate, concurrency * 100);
  const days = daily && left !== null && todo > left ? Math.ceil((todo - left) / daily) : 0;
  const longest =
    daily === 0
      ? ', and new ones fail'
      : days > 0
        ? `, or ${days} more days if all are new`
        : ', and longer for new ones';
  return (
    `${reading.lines} lines, ${reading.visits.size} addresses, ${finished} finished before, ${todo} to look up; ${allowance}; ` +
    `at least ${duration(fastest)} if all are saved${todo > 0 ? longest : ''}`
  );
};

/** How the lookups of a run ended. */
interface Ended {
  readonly isStopped: boolean;
  /** Addresses that the next run tries again. */
  readonly failed: number;
}

/** @throws DoorplateError for a refusal that says nothing of the address, as of the key */
const lookUpAll = async (
  addresses: Iterable<string> | AsyncIterable<string>,
  file: CompaniesFile,
  { visits }: Reading,
  { client, signal, terminal, concurrency = CONCURRENCY }: EnrichOptions,
): Promise<Ended> => {
  const counts = { company: 0, isp: 0, unclassified: 0, invalid: 0, failed: 0 };
  const many = client.lookupMany(addresses, { concurrency, signal, skip: file.finished });
  const line = showProgress(() => many.progress, terminal);
  let ending = '; ';
  try {
    for await (const looked of many) {
      const { error, result, ip } = looked;
      if (error && error.code !== FINAL_ERROR && error.outcome === 'refused' && error.status !== 429)
        throw error;
      await file.write(looked, visits.get(ip)?.requests ?? 0);
      counts[result?.match_type ?? (error?.code === FINAL_ERROR ? 'invalid' : 'failed')] += 1;
    }
    return { isStopped: false, failed: counts.failed };
  } catch (error) {
    if (!(error instanceof DoorplateError && error.kind === 'aborted')) {
      await file.close();
      ending = '\n';
      throw error;
    }
    return { isStopped: true, failed: counts.failed };
  } finally {
    line.end();
    const { company, isp, unclassified, invalid, failed } = counts;
    terminal.write(
      `${company} companies, ${isp} networks of providers, ${unclassified} unclassified, ${invalid} that no lookup takes, ${failed} failed${ending}`,
    );
  }
};
