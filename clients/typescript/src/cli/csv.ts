/** Lines of CSV (RFC 4180), without line breaks within cells. */

/** A cell that a spreadsheet may take for a formula, also in full width or after blanks, begins with an apostrophe. */
export const csvLine = (cells: readonly (string | number | boolean | null)[]): string =>
  `${cells.map((cell) => cellOf(cell === null ? '' : String(cell))).join(',')}\n`;

/** Text for a line of a terminal, which control characters could drive. */
export const withoutControls = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');

const cellOf = (text: string): string => {
  const plain = withoutControls(text);
  const safe = /^\s*[=+\-@＝＋－＠]/.test(plain) ? `'${plain}` : plain;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export const parseCsvLine = (line: string, separator: ',' | ';' = ','): string[] => {
  const cells: string[] = [];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] as string;
    if (quoted && letter === '"' && line[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (letter === '"') quoted = !quoted;
    else if (letter === separator && !quoted) {
      cells.push(cell);
      cell = '';
    } else cell += letter;
  }
  return [...cells, cell];
};
