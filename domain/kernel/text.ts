/** Whether a text is a name that people see in lists and mails: as `isText`, and without control characters. */
export const isName = (text: string, longest: number): boolean =>
  isText(text, longest) && !/\p{Cc}/u.test(text);

/** Whether a text has 1 to `longest` code points, and neither NUL nor a lone surrogate, which PostgreSQL does not take. */
export const isText = (text: string, longest: number): boolean => {
  const length = [...text].length;
  return length >= 1 && length <= longest && !text.includes('\u0000') && text.isWellFormed();
};

/** Longer than a name or a password of allowed length, however its letters are composed. */
const LONGEST_COMPOSED = 2_000;

/**
 * Returns one spelling for all ways of composing the same letters (NFKC). A text of over 2,000 UTF-16 units comes back
 * as it is: the time of normalization grows with the square of a run of combining marks, and anybody may send 64 KiB.
 */
export const composed = (text: string): string =>
  text.length > LONGEST_COMPOSED ? text : text.normalize('NFKC');
