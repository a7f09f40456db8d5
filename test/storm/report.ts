import { cpus } from 'node:os';
import type { MemoryPeaks } from './memory.ts';
import { REQUEST_KINDS, type Recovery, type RequestKind } from './observations.ts';
import type { Violation } from './violations.ts';

export interface StormResult {
  readonly date: string;
  readonly machine: string;
  readonly store: string;
  readonly seed: number;
  readonly minutes: number;
  /** How often each fault was injected. */
  readonly faults: Readonly<Record<string, number>>;
  readonly requests: Readonly<Record<RequestKind, { success: number; unavailable: number; cut: number }>>;
  readonly totals: Readonly<Record<string, number>>;
  readonly recoveries: readonly Recovery[];
  /** The longest time from a fault's end until all processes were ready. */
  readonly readySeconds: Readonly<Record<string, number | null>>;
  /** The longest time from a fault's end until all clients that had waited for it were served. */
  readonly servedSeconds: Readonly<Record<string, number>>;
  readonly memory: readonly MemoryPeaks[];
  readonly violations: readonly Violation[];
  readonly violationCount: number;
  /** The last log lines of each process, where there is a violation. */
  readonly logs: Readonly<Record<string, string>>;
}

export const machineName = (): string => `${cpus().length} cores (${cpus()[0]?.model.trim() || 'unknown'})`;

const NONE = '–';

/** The result as Markdown, which a terminal shows as well. */
export const printable = (result: StormResult): string =>
  [
    `Storm of ${result.minutes} minutes on ${result.store}, ${result.date}, ${result.machine}, seed ${result.seed}.`,
    '',
    'Seconds out of service by fault and kind of request, the worst of all times that the fault was injected:',
    'the longest time without a success / from the end of the fault to the first success of a new request.',
    '',
    recoveryTable(result),
    '',
    ...Object.entries(result.servedSeconds).map(
      ([fault, seconds]) => `After "${fault}" the last client was served within ${seconds} s.\n`,
    ),
    table([
      ['requests', 'success', '503', 'cut'],
      ...REQUEST_KINDS.map((kind) => {
        const { success, unavailable, cut } = result.requests[kind];
        return [kind, String(success), String(unavailable), String(cut)];
      }),
    ]),
    '',
    table([
      ['peak memory, MiB', 'first half', 'second half'],
      ...result.memory.map(({ process, firstHalfMib, secondHalfMib }) => [
        process,
        String(firstHalfMib),
        String(secondHalfMib),
      ]),
    ]),
    '',
    `Proved: ${Object.entries(result.totals)
      .map(([what, count]) => `${count} ${what}`)
      .join(', ')}.`,
    '',
    result.violationCount === 0
      ? 'No invariant was violated.'
      : `${result.violationCount} VIOLATIONS:\n${result.violations.map(describe).join('\n')}`,
    ...Object.entries(result.logs).map(([process, log]) => `\nLast log lines of ${process}:\n${log}`),
  ].join('\n');

export const describe = ({ invariant, detail }: Violation): string => `- ${invariant}: ${detail}`;

const recoveryTable = ({ recoveries, faults, readySeconds }: StormResult): string => {
  const head = ['fault', 'times', ...REQUEST_KINDS, 'all ready'];
  const rows = Object.entries(faults).map(([fault, times]) => {
    const cells = REQUEST_KINDS.map((kind) =>
      cell(recoveries.filter((one) => one.fault === fault && one.kind === kind)),
    );
    return [fault, String(times), ...cells, String(readySeconds[fault] ?? NONE)];
  });
  return table([head, ...rows]);
};

const cell = (of: readonly Recovery[]): string => {
  const gap = Math.max(...of.map(({ longestGapSeconds }) => longestGapSeconds));
  const after = of.map(({ afterEndSeconds }) => afterEndSeconds ?? Number.POSITIVE_INFINITY);
  const worst = Math.max(...after);
  return `${gap.toFixed(1)} / ${Number.isFinite(worst) ? worst.toFixed(1) : NONE}`;
};

const table = (rows: readonly (readonly string[])[]): string => {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]) =>
    `| ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
};
