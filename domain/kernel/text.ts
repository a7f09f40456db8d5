/** Returns whether a text is a name to show in lists: as `isText`, without control characters. */
export const isName = (text: string, longest: number): boolean =>
  isText(text, longest) && !/\p{Cc}/u.test(text);

/** Returns whether a text has 1 to `longest` code points, without NUL and lone surrogates, which PostgreSQL rejects. */
export const isText = (text: string, longest: number): boolean => {
  if (text.length > 2 * longest) return false;
  const length = [...text].length;
  return length >= 1 && length <= longest && !text.includes('\u0000') && text.isWellFormed();
};

/** Longer than any allowed name or password, of 200 characters, however its letters are composed. */
const MAX_COMPOSED_LENGTH = 800;

/**
 * Normalizes a text (NFKC). Over 800 UTF-16 units it is returned unchanged, because normalization takes quadratic time for a
 * run of combining marks, and callers may send 64 KiB.
 */
export const composed = (text: string): string =>
  text.length > MAX_COMPOSED_LENGTH ? text : text.normalize('NFKC');
