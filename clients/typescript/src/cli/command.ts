/** What every command has: options, a help, and the client that calls the service. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { type Client, createClient } from '../client.ts';
import type { ClientOptions } from '../options.ts';

type Options = NonNullable<ParseArgsConfig['options']>;

export interface Command {
  readonly help: string;
  readonly options: Options;
  /** @returns the exit code @throws WrongUsage; Error with one line for whatever else ended it */
  run(args: readonly string[]): Promise<number>;
}

/** Ends the program with 2, after the message and the help. */
export class WrongUsage extends Error {}

/** The options that every command has. */
export const SHARED_OPTIONS = { url: { type: 'string' }, help: { type: 'boolean' } } as const;

/** @throws WrongUsage for options that are not among these */
export const parsed = <const Known extends Options>(args: readonly string[], options: Known) => {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...SHARED_OPTIONS, ...options } as typeof SHARED_OPTIONS & Known,
    });
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error));
  }
};

/** @param url of the service; by default that of the environment @throws WrongUsage without it, or without the key */
export const clientFor = (url: string | undefined, more: Partial<ClientOptions> = {}): Client => {
  const baseUrl = url ?? process.env.DOORPLATE_URL;
  const apiKey = process.env.DOORPLATE_API_KEY;
  if (baseUrl === undefined) throw new WrongUsage('--url or DOORPLATE_URL is missing');
  if (apiKey === undefined) throw new WrongUsage('DOORPLATE_API_KEY is missing');
  return createClient({ baseUrl, apiKey, ...more });
};

/** Aborted by Ctrl-C, and by SIGTERM. */
export const stopSignal = (): AbortSignal => {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  return stop.signal;
};
