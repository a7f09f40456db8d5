/** The file of results: a line for each finished address, so that a run that was stopped can be continued. */
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import type { LookedUp } from '../lookup-attempt.ts';
import { csvLine, parseCsvLine } from './csv.ts';
import { ownText, replaceFile } from './files.ts';

const COLUMNS = [
  ...['ip', 'requests', 'match_type', 'company_found', 'name', 'website', 'industry', 'employees', 'city'],
  ...['country_code', 'is_isp', 'stale', 'enriched_at', 'error'],
];
const HEADER = csvLine(COLUMNS);
const ERROR = COLUMNS.indexOf('error');
/** The only error that says something of the address itself. */
export const FINAL_ERROR = 'invalid_ip';

export interface Row {
  readonly ip: string;
  readonly name: string;
  readonly website: string;
}

export interface CompaniesFile {
  /** Addresses that an earlier run has finished: with a result, or because they are none. */
  readonly finished: ReadonlySet<string>;
  write(looked: LookedUp, requests: number): Promise<void>;
  /** Puts the final counts of requests into the lines and gives the file its name. @returns all rows */
  finish(requests: ReadonlyMap<string, { readonly requests: number }>): Promise<readonly Row[]>;
  /** Leaves what is written for the next run. */
  close(): Promise<void>;
}

export interface CompaniesFileOptions {
  /** Whether a file of something else may be replaced. */
  readonly force?: boolean | undefined;
  /** Whether lines are written to the file itself, for a run without an end. */
  readonly direct?: boolean | undefined;
}

/** The file itself, and those that stand beside it during a run. */
export const pathsOf = (path: string): readonly string[] =>
  ['', '.part', '.new', '.part.new'].map((end) => path + end);

/** What an earlier run has left in the file or beside it, unchanged. @throws Error for a file that holds something else */
export const finishedBefore = async (path: string, force = false): Promise<readonly string[]> =>
  (await linesBefore(path, force)).map(ipOf);

/**
 * Continues `path.part`, or else the finished file `path`, or begins a new one. Lines go to `path.part` until `finish`.
 * @throws Error where one of them holds something else and `force` is not given; then nothing has been changed
 */
export const openCompaniesFile = async (
  path: string,
  { force = false, direct = false }: CompaniesFileOptions = {},
): Promise<CompaniesFile> => {
  const part = `${path}.part`;
  const before = await linesBefore(path, force);
  const target = direct ? path : part;
  await replace(target, before);
  if (direct) await rm(part, { force: true });
  const file: FileHandle = await open(target, 'a');
  return {
    finished: new Set(before.map(ipOf)),
    write: async (looked, requests) => {
      await file.appendFile(lineOf(looked, requests));
    },
    finish: async (counted) => {
      await file.close();
      const cells = linesIn(await readFile(target, 'utf8')).map((line) => parseCsvLine(line));
      for (const row of cells) row[1] = String(counted.get(row[0] ?? '')?.requests ?? row[1]);
      await replace(
        target,
        cells.map((row) => csvLine(row).slice(0, -1)),
      );
      await rename(target, path);
      return cells.map(([ip = '', , , , name = '', website = '']) => ({ ip, name, website }));
    },
    close: () => file.close(),
  };
};

const linesBefore = async (path: string, force: boolean): Promise<readonly string[]> => {
  // Both are judged before either is written.
  const part = await ownLines(`${path}.part`, force, (text) => HEADER.startsWith(text));
  const whole = await ownLines(path, force, (text) => text === '');
  return part ?? whole ?? [];
};

const replace = (path: string, lines: readonly string[]): Promise<void> =>
  replaceFile(path, `${HEADER}${lines.map((line) => `${line}\n`).join('')}`);

/** The finished lines of an own file; null: there is none. */
const ownLines = async (
  path: string,
  force: boolean,
  isEmpty: (text: string) => boolean,
): Promise<string[] | null> => {
  const text = await ownText(path, HEADER, force, isEmpty);
  if (text === null) return null;
  return linesIn(text).filter((line) => ['', FINAL_ERROR].includes(parseCsvLine(line)[ERROR] ?? ''));
};

/** The lines behind the header, without the half line of a run that was killed. */
const linesIn = (text: string): string[] => text.split('\n').slice(1, -1);

const ipOf = (line: string): string => parseCsvLine(line)[0] ?? '';

const lineOf = ({ ip, result, error }: LookedUp, requests: number): string => {
  if (error) return csvLine([ip, requests, ...COLUMNS.slice(3).map(() => null), error.code ?? error.kind]);
  const { match_type, company_found, company, network, stale, enriched_at } = result;
  return csvLine([
    ...[ip, requests, match_type, company_found],
    ...[
      company?.name ?? null,
      company?.website ?? null,
      company?.industry ?? null,
      company?.employees ?? null,
    ],
    ...[company?.city ?? null, company?.country_code ?? null, network.is_isp, stale, enriched_at, null],
  ]);
};
