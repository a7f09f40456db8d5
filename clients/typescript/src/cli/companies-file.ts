/** The file of results: a line for each finished address, so that a run that was stopped can be resumed. */
import { type FileHandle, open } from 'node:fs/promises';
import type { LookedUp } from '../lookup-attempt.ts';
import { csvLine, parseCsvLine } from './csv.ts';

const COLUMNS = [
  ...['ip', 'requests', 'match_type', 'company_found', 'name', 'website', 'industry', 'employees', 'city'],
  ...['country_code', 'is_isp', 'stale', 'enriched_at', 'error'],
];

export interface CompaniesFile {
  /** Addresses that an earlier run has written. */
  readonly finished: ReadonlySet<string>;
  write(looked: LookedUp, requests: number): Promise<void>;
  close(): Promise<void>;
}

/** @throws Error where the file holds something else */
export const openCompaniesFile = async (path: string): Promise<CompaniesFile> => {
  const file = await open(path, 'a+');
  try {
    const finished = await readFinished(file, path);
    return {
      finished,
      write: async (looked, requests) => {
        await file.appendFile(lineOf(looked, requests));
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
};

const readFinished = async (file: FileHandle, path: string): Promise<Set<string>> => {
  const text = await file.readFile('utf8');
  if (text === '') {
    await file.appendFile(csvLine(COLUMNS));
    return new Set();
  }
  // A run that was killed may have left half a line.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole.length < text.length) await file.truncate(Buffer.byteLength(whole));
  const [header = '', ...lines] = whole.split('\n');
  if (`${header}\n` !== csvLine(COLUMNS))
    throw new Error(`${path} is not a file of this command: name another`);
  return new Set(lines.filter((line) => line !== '').map((line) => parseCsvLine(line)[0] ?? ''));
};

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
