import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A child process that has printed its first line, which is JSON. */
export interface Helper<Line> {
  readonly child: ChildProcess;
  readonly line: Line;
  /** Resolves once the process has ended, also if it already has. */
  readonly ended: Promise<unknown>;
}

export interface HelperOptions {
  readonly uid?: number;
  readonly gid?: number;
  readonly cwd?: string;
}

/** Runs a TypeScript file in a separate process and waits for its first line. */
export async function startHelper<Line>(
  script: URL | string,
  args: readonly string[],
  options: HelperOptions = {},
): Promise<Helper<Line>> {
  const path = typeof script === 'string' ? script : fileURLToPath(script);
  const child = spawn(process.execPath, [path, ...args], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?];
  if (line === undefined) throw new Error(`${path} ended without a word`);
  return { child, line: JSON.parse(line) as Line, ended };
}
