import { open } from 'node:fs/promises';
import type { Cell, RowFile } from './row-file.ts';
import type { View } from './view.ts';

/**
 * Creates a CSV file by RFC 4180: line feeds, UTF-8, a header line. Null is an empty field and the empty text is "", so
 * that they differ. Text that a spreadsheet would take for a formula gets an apostrophe. Instants are ISO 8601 in UTC.
 */
export const csvFile = async (path: string, { columns }: View): Promise<RowFile> => {
  const handle = await open(path, 'a');
  const lines = (rows: readonly (readonly Cell[])[]): string =>
    rows.map((row) => `${row.map(field).join(',')}\n`).join('');
  await handle.appendFile(lines([columns.map(({ name }) => name)]));
  return {
    write: (rows) => handle.appendFile(lines(rows)),
    end: () => handle.datasync(),
    close: () => handle.close(),
  };
};

const field = (cell: Cell): string => {
  if (cell === null) return '';
  if (cell instanceof Date) return cell.toISOString();
  if (typeof cell !== 'string') return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
