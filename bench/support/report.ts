import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Figure, Line } from './bench.ts';
import type { Machine } from './machine.ts';

const RESULTS = fileURLToPath(new URL('../results/', import.meta.url));

const verdictOf = ({ ratio, target }: Line): 'ok' | 'below' | '–' => {
  if (target === null) return '–';
  const met = 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost;
  return met ? 'ok' : 'below';
};

const targetOf = ({ target }: Line): string => {
  if (target === null) return '–';
  return 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
};

const figure = ({ of, value, unit }: Figure): string => {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${of}: ${value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })}${unit}`;
};

const HEAD = ['row', 'ratio', 'target', 'verdict', 'measured', 'against'];

const cells = (line: Line): string[] => [
  line.row,
  line.ratio.toFixed(2),
  targetOf(line),
  verdictOf(line),
  figure(line.a),
  figure(line.b),
];

/** The lines as a Markdown table with even columns, which a terminal shows as well. */
export const table = (lines: readonly Line[]): string => {
  const rows = [HEAD, ...lines.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const text = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = HEAD, ...body] = rows;
  return [text(head), text(widths.map((width) => '-'.repeat(width))), ...body.map(text)].join('\n');
};

/** The further observations, row by row. */
export const notes = (lines: readonly Line[]): string =>
  lines.flatMap((line) => line.notes.map((note) => `- ${line.row}: ${note}.`)).join('\n');

/** Writes `<date>-<name>.md` and `.json`, and returns their paths. */
export const writeResults = (
  lines: readonly Line[],
  machine: Machine,
  name: string,
): [markdown: string, json: string] => {
  const base = `${RESULTS}${machine.date.slice(0, 10)}-${name}`;
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${base}.md`, markdown(lines, machine));
  const all = lines.map((line) => ({ ...line, verdict: verdictOf(line) }));
  writeFileSync(`${base}.json`, `${JSON.stringify({ machine, lines: all }, null, 2)}\n`);
  return [`${base}.md`, `${base}.json`];
};

/** The change of these lines' ratios since the last saved run of the same name; '' without one. */
export const changesSinceLast = (lines: readonly Line[], name: string): string => {
  const file = readdirSync(RESULTS)
    .filter((file) => /^\d{4}-\d{2}-\d{2}-/.test(file) && file.slice(11) === `${name}.json`)
    .sort()
    .at(-1);
  if (file === undefined) return '';
  const last = JSON.parse(readFileSync(`${RESULTS}${file}`, 'utf8')) as { readonly lines: readonly Line[] };
  const changes = lines.flatMap(({ row, ratio }) => {
    const before = last.lines.find((line) => line.row === row);
    return before ? [`- ${row}: ${before.ratio.toFixed(2)} to ${ratio.toFixed(2)}`] : [];
  });
  return changes.length === 0 ? '' : `Ratios since ${file.slice(0, 10)}:\n${changes.join('\n')}`;
};

const markdown = (
  lines: readonly Line[],
  machine: Machine,
): string => `# Measured on ${machine.date.slice(0, 10)}

${machine.cores} cores (${machine.cpu}), ${machine.memory_gib} GiB, ${machine.kernel}. Node ${machine.node}, PostgreSQL ${machine.postgresql}, store: ${machine.store}.
Service, PostgreSQL and load generator shared these cores. Each ratio is the median over rounds in which both sides
were measured one after the other; the figures beside it are medians too, and mean little on another machine.

${table(lines)}

${notes(lines)}
`;
