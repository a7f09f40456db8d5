/** Prints a result as JSON with `--json`, otherwise as a table or as `name  value` lines. */
export function print(value: object, json: boolean): void {
  process.stdout.write(`${printable(json ? JSON.stringify(value) : text(value))}\n`);
}

/** Escapes, as in JSON, control characters that others may have written, those of direction too: a terminal obeys them. */
export const printable = (text: string): string =>
  text.replaceAll(
    /\p{Bidi_Control}|[^\P{Cc}\n]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

const text = (value: object): string => (Array.isArray(value) ? table(value) : lines(value));

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  // A line break would begin what looks like a record of its own.
  return typeof value === 'object' ? JSON.stringify(value) : String(value).replaceAll('\n', '\\n');
}

function lines(record: object): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length));
  return Object.entries(record)
    .map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`)
    .join('\n');
}

/** Formats records with the same fields as a table. */
export function table(rows: readonly Record<string, unknown>[]): string {
  const [first] = rows;
  if (!first) return '(none)';
  const names = Object.keys(first);
  const all = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((value, column) => value.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
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
