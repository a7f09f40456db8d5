/** `doorplate-client enrich`: the companies behind the addresses of a log. */
import type { Client } from '../client.ts';
import { DoorplateError } from '../errors.ts';
import { openCompaniesFile } from './companies-file.ts';
import { showProgress } from './progress.ts';
import { type LogFormat, readLog } from './read-log.ts';

export interface EnrichOptions {
  readonly client: Client;
  readonly log: string;
  readonly format: LogFormat;
  readonly field: string | undefined;
  readonly out: string;
  readonly concurrency: number | undefined;
  /** Aborted: what is finished is written, and the run can be resumed. */
  readonly signal: AbortSignal;
  readonly terminal: { write(text: string): unknown; readonly isTTY?: boolean | undefined };
}

interface Counts {
  company: number;
  isp: number;
  unclassified: number;
  failed: number;
}

/** @returns whether all addresses are finished */
export const enrich = async (options: EnrichOptions): Promise<boolean> => {
  const { client, signal, terminal, concurrency } = options;
  const { lines, without, requests, notPublic } = await readLog(options.log, options.format, options.field);
  const file = await openCompaniesFile(options.out);
  const counts: Counts = { company: 0, isp: 0, unclassified: 0, failed: 0 };
  const earlier = [...requests.keys()].filter((ip) => file.finished.has(ip));
  terminal.write(
    `${lines} lines, ${requests.size} addresses${earlier.length > 0 ? `, ${earlier.length} finished before` : ''}\n`,
  );
  const many = client.lookupMany(requests.keys(), { concurrency, signal, skip: earlier });
  const line = showProgress(() => many.progress, terminal);
  let isStopped = false;
  try {
    for await (const looked of many) {
      await file.write(looked, requests.get(looked.ip) ?? 0);
      counts[looked.result?.match_type ?? 'failed'] += 1;
    }
  } catch (error) {
    if (!(error instanceof DoorplateError && error.kind === 'aborted')) throw error;
    isStopped = true;
  } finally {
    line.end();
    await file.close();
  }
  const { company, isp, unclassified, failed } = counts;
  terminal.write(
    `${company} companies, ${isp} networks of providers, ${unclassified} unclassified, ${failed} failed; ` +
      `${notPublic} lines with addresses that are not public, ${without} without one.\n` +
      `${isStopped ? 'Stopped: the same command goes on from here. ' : ''}The results are in ${options.out}.\n`,
  );
  return !isStopped;
};
