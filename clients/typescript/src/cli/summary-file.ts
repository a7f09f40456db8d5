/** The visits of each company of a run. */
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Row } from './companies-file.ts';
import { csvLine } from './csv.ts';
import { identityOf, replaceFile } from './files.ts';
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
 * @param others files of the same run
 * @throws Error for one of these, for a file of something else without `force`, and where no file can be
 */
export const checkSummary = async (path: string, others: readonly string[], force = false): Promise<void> => {
  const own = await Promise.all([path, `${path}.new`].map(identityOf));
  for (const other of others) {
    if (own.includes(await identityOf(other)))
      throw new Error(`${path} cannot be the summary: the run uses ${other}`);
  }
  if (!(await stat(dirname(path)).catch(() => null))?.isDirectory())
    throw new Error(`${path} cannot be written: there is no such folder`);
  const known = await stat(path).catch(() => null);
  if (known === null) return;
  if (!known.isFile()) throw new Error(`${path} cannot be written: it is no file`);
  if (!force && !(await isSummary(path)))
    throw new Error(`${path} is not a summary of this command: name another, or replace it with --force`);
};

/** Whether an earlier run has written the file, or it is empty. */
export const isSummary = async (path: string): Promise<boolean> => {
  const start = await startOf(path, HEADER.length).catch(() => null);
  return start === '' || start === HEADER;
};

const startOf = async (path: string, length: number): Promise<string> => {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
};

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
