/** Whether a text is a name that people see in lists and mails: as `isText`, and without control characters. */
export const isName = (text: string, longest: number): boolean =>
  isText(text, longest) && !/\p{Cc}/u.test(text);

/** Whether a text has 1 to `longest` code points, and neither NUL nor a lone surrogate, which PostgreSQL does not take. */
export const isText = (text: string, longest: number): boolean => {
  const length = [...text].length;
  return length >= 1 && length <= longest && !text.includes('\u0000') && text.isWellFormed();
};
