import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf, cpuOfFamily } from '../../cli/installation/process-stats.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { type Child, startChild } from './child.ts';

/** The rate of single appends of a separate event store. */
export interface RawAppends {
  /** Appends as fast as it can for this time. */
  measure(seconds: number): Promise<Raw>;
  end(): Promise<void>;
}

export interface Raw {
  readonly perSecond: number;
  readonly cpuMicros: { readonly process: number; readonly PostgreSQL: number };
}

const START_MS = 60_000;
const SLACK_MS = 20_000;

/**
 * Starts `append-raw.ts` with this number of callers, warmed up; `more` names another store than the embedded
 * PostgreSQL, `bytes` how much larger than usual an event is.
 */
export const startRawAppends = async (
  callers: number,
  more: Readonly<Record<string, string>>,
  bytes = 0,
): Promise<RawAppends> => {
  const folder = makeTestFolder();
  const child = startChild('append-raw.ts', { env: { DATA_DIR: folder, ...more }, callers, bytes });
  const end = async (): Promise<void> => {
    await child.end();
    await removeDataFolder(folder);
  };
  try {
    const { pid: postmaster } = await child.next<{ pid: number }>(START_MS);
    await append(child, postmaster, 1);
    return { measure: (seconds) => append(child, postmaster, seconds), end };
  } catch (error) {
    await end();
    throw error;
  }
};

const append = async (child: Child, postmaster: number, seconds: number): Promise<Raw> => {
  const before = { process: cpuOf(child.pid), PostgreSQL: cpuOfFamily(postmaster) };
  child.say({ seconds });
  const done = await child.next<{ appends: number; seconds: number }>(seconds * 1_000 + SLACK_MS);
  const micros = (cpuSeconds: number) => (cpuSeconds * 1e6) / done.appends;
  return {
    perSecond: done.appends / done.seconds,
    cpuMicros: {
      process: micros(cpuOf(child.pid) - before.process),
      PostgreSQL: micros(cpuOfFamily(postmaster) - before.PostgreSQL),
    },
  };
};
