/** The visits of each company of a run. */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Row } from './companies-file.ts';
import { csvLine } from './csv.ts';
import { identityOf, ownText, replaceFile } from './files.ts';
import type { Visit } from './formats.ts';

const HEADER = csvLine(['name', 'website', 'visits', 'addresses', 'first', 'last']);

/** The requests of one address, or of one company. */
export interface Visits {
  requests: number;
  first: number | null;
  last: number | null;
}

interface Company {
  readonly name: string;
  readonly website: string;
  addresses: number;
  readonly visits: Visits;
}

/** @returns whether the address is new */
export const countVisit = (visits: Map<string, Visits>, { ip, at }: Visit): boolean => {
  const known = visits.get(ip);
  if (known) add(known, { requests: 1, first: at, last: at });
  else visits.set(ip, { requests: 1, first: at, last: at });
  return known === undefined;
};

const add = (all: Visits, { requests, first, last }: Visits): void => {
  all.requests += requests;
  all.first = bound(Math.min, all.first, first);
  all.last = bound(Math.max, all.last, last);
};

const bound = (of: (...all: number[]) => number, a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : of(a, b);

/**
 * Checks that a summary may be written, before anything is spent on it.
 * @param others the logs, and the files of the results
 * @throws Error for one of these, for a file of something else without `force`, and where no file can be
 */
export const checkSummary = async (path: string, others: readonly string[], force = false): Promise<void> => {
  const own = await Promise.all([path, `${path}.new`].map(identityOf));
  const taken = await Promise.all(others.map(identityOf));
  if (own.some((one) => taken.includes(one)))
    throw new Error(`${path} is a log or a file of the results: name another for the summary`);
  const folder = dirname(path);
  if (!(await stat(folder).catch(() => null))?.isDirectory())
    throw new Error(`${path} cannot be written: there is no folder ${folder}`);
  await ownText(path, HEADER, force);
};

/** Whether an earlier run has written the file, or nobody has yet. */
export const isSummary = (path: string): Promise<boolean> =>
  ownText(path, HEADER, false).then(
    () => true,
    () => false,
  );

/** Writes the visits of each company, the most first. */
export const writeSummary = async (
  path: string,
  rows: readonly Row[],
  visits: ReadonlyMap<string, Visits>,
): Promise<void> => {
  const companies = new Map<string, Company>();
  for (const { ip, name, website } of rows) {
    const own = visits.get(ip);
    if (name === '' || own === undefined) continue;
    const key = JSON.stringify([name, website]);
    const none = { requests: 0, first: null, last: null };
    const company = companies.get(key) ?? { name, website, addresses: 0, visits: none };
    companies.set(key, company);
    company.addresses += 1;
    add(company.visits, own);
  }
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  const lines = [...companies.values()]
    .sort((a, b) => b.visits.requests - a.visits.requests || (a.name < b.name ? -1 : 1))
    .map(({ name, website, addresses, visits: { requests, first, last } }) =>
      csvLine([name, website, requests, addresses, iso(first), iso(last)]),
    );
  await replaceFile(path, HEADER + lines.join(''));
};
