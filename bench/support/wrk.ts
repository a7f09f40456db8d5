import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuOf } from '../../cli/installation/process-stats.ts';
import { reapProcess } from '../../test/support/reaped.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import { bytesOf, requestsOf } from './requests.ts';

/** Rows that use `wrk` are skipped by name without it. */
export class NoGenerator extends Error {}

const SCRIPT = fileURLToPath(new URL('../requests.lua', import.meta.url));
/** More than the service answers in a run; a bare route repeats some, which makes no difference there. */
const DIFFERENT_REQUESTS = 60_000;
const CPU_POLL_MS = 50;
/** A request that takes longer ends the row. */
const TIMEOUT_SECONDS = 10;

/**
 * A load at full speed from a native generator with one thread: it takes a quarter of a JavaScript generator's CPU.
 */
export const openWrk = (plan: LoadPlan) => {
  if (spawnSync('wrk', ['-v']).error)
    throw new NoGenerator('wrk is not installed (Debian: apt-get install wrk)');
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-wrk-'));
  const file = join(folder, 'requests');
  const requestOf = requestsOf(plan);
  const { requests } = plan;
  const isSame = requests.of === 'lookups' && 'same' in requests.address;
  const count = isSame ? requests.keys.length : DIFFERENT_REQUESTS;
  const texts = Array.from({ length: count }, (_, number) => bytesOf(requestOf(number), plan.port));
  writeFileSync(
    file,
    Buffer.concat(texts.flatMap((text) => [Buffer.from(String(text.length).padStart(8, '0')), text])),
  );

  let sent = 0;
  const run = async (seconds: number): Promise<LoadResult> => {
    const args = [
      '-t1',
      `-c${plan.connections}`,
      `-d${seconds}s`,
      '--latency',
      `--timeout=${TIMEOUT_SECONDS}s`,
      '-s',
      SCRIPT,
      `http://127.0.0.1:${plan.port}`,
    ];
    const env = { ...process.env, REQUESTS: file, SKIP: String(sent) };
    const child = spawn('wrk', args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    if (child.pid === undefined) throw new NoGenerator('wrk could not be started');
    const { pid } = child;
    reapProcess(pid);
    let ownCpu = 0;
    const polling = setInterval(() => {
      ownCpu = Math.max(ownCpu, cpuOf(pid));
    }, CPU_POLL_MS);
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    clearInterval(polling);
    if (code !== 0) throw new Error(`wrk ended with ${code}: ${output}`);
    const result = { ...parse(output), ownCpu };
    sent += result.answers;
    return { ...result, sent };
  };
  return { run, close: () => rmSync(folder, { recursive: true }) };
};

const parse = (output: string): Omit<LoadResult, 'ownCpu' | 'sent'> => {
  const [, answers = '', seconds = '', unit = ''] = /(\d+) requests in ([\d.]+)(s|m)/.exec(output) ?? [];
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1] ?? 0);
  if (refused > 0) throw new Error(`of ${answers} answers ${refused} were refusals`);
  const broken = /Socket errors: (.*)/.exec(output)?.[1];
  if (broken !== undefined) throw new Error(`wrk: ${broken}`);
  return {
    answers: Number(answers),
    seconds: Number(seconds) * (unit === 'm' ? 60 : 1),
    p50: milliseconds(/50%\s+([\d.]+)(us|ms|s)/.exec(output)),
    p99: milliseconds(/99%\s+([\d.]+)(us|ms|s)/.exec(output)),
  };
};

const milliseconds = (found: RegExpExecArray | null): number => {
  const [, value = 'NaN', unit = 'ms'] = found ?? [];
  return Number(value) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? 1);
};
