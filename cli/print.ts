import { stripVTControlCharacters, styleText } from 'node:util';
import { timeText } from '../operations/texts.ts';

/** Prints a result as JSON with `--json`, otherwise as a table or as `name  value` lines. */
export function print(value: object, json: boolean): void {
  process.stdout.write(json ? `${printable(JSON.stringify(value))}\n` : `${text(value)}\n`);
}

/** Escapes, as in JSON, control characters that others may have written, those of direction too: a terminal obeys them. */
export const printable = (text: string): string =>
  text.replaceAll(
    /\p{Bidi_Control}|[^\P{Cc}\n]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const text = (value: object): string => (Array.isArray(value) ? table(value) : lines(value));

/** Styles text on a terminal, unless NO_COLOR is set (https://no-color.org). */
export const styled = (style: Parameters<typeof styleText>[0], text: string): string =>
  styleText(style, text, { stream: process.stdout });

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return timeText(value);
  if (typeof value === 'string' && INSTANT.test(value)) return timeText(new Date(value));
  // A line break would begin what looks like a record of its own.
  return printable(typeof value === 'object' ? JSON.stringify(value) : String(value)).replaceAll('\n', '\\n');
}

/** Formats a record as aligned `name  value` lines. */
export function lines(record: object): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length));
  return Object.entries(record)
    .map(([name, value]) => `${styled('dim', name.padEnd(width))}  ${cell(value)}`)
    .join('\n');
}

/** Formats records with the same fields as a table, numbers on the right. */
export function table(rows: readonly Record<string, unknown>[]): string {
  const [first] = rows;
  if (!first) return '(none)';
  const names = Object.keys(first);
  const cells = rows.map((row) => names.map((name) => cell(row[name])));
  const widths = names.map((name, column) =>
    Math.max(name.length, ...cells.map((row) => stripVTControlCharacters(row[column] ?? '').length)),
  );
  const isNumber = names.map((name) =>
    rows.every((row) => row[name] == null || typeof row[name] === 'number'),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((value, column) =>
        isNumber[column] ? value.padStart(widths[column] ?? 0) : value.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [styled('dim', line(names)), ...cells.map(line)].join('\n');
}

let ended = false;

/** Writes printable text with backpressure. @returns false once the reader has closed stdout, as after `| head` */
export async function writeOut(text: string): Promise<boolean> {
  if (ended) return false;
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
  const error = await new Promise<Error | null | undefined>((resolve) =>
    process.stdout.write(printable(text), resolve),
  );
  ended = error !== null && error !== undefined;
  return !ended;
}
