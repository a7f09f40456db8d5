export type CsvCell = string | number | bigint | boolean | Date | null;

/**
 * Begins what a spreadsheet may take for a formula, also after blanks, which some leave out, and in the full-width forms that a
 * Japanese or Chinese one reads.
 */
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/;

/**
 * Writes a row of CSV (RFC 4180) without its line end. Null is an empty field and the empty text is "", so that they differ;
 * instants are ISO 8601 in UTC. A text that a spreadsheet would take for a formula gets an apostrophe; numbers are left as
 * they are.
 */
export const csvRow = (cells: readonly CsvCell[]): string => cells.map(field).join(',');

function field(cell: CsvCell): string {
  if (cell === null) return '';
  if (cell instanceof Date) return cell.toISOString();
  if (typeof cell !== 'string') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
