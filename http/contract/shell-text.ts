/** Characters that no POSIX shell gives a meaning. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** Writes a text as one word of a POSIX shell (POSIX.1-2024, Shell, 2.2.2), for every line that is offered for copying. */
export const shellQuoted = (text: string): string =>
  PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
