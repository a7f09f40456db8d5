import { readFileSync } from 'node:fs';

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/**
 * Returns the content of a text file that people write, without the byte order mark that some editors put before it.
 * @throws Error if the mark says UTF-16
 */
export function withoutMark(content: Buffer): Buffer {
  if (UTF16_MARKS.some((mark) => content.subarray(0, mark.length).equals(mark))) {
    throw new Error('the file is UTF-16: save it as UTF-8');
  }
  return content.subarray(0, UTF8_MARK.length).equals(UTF8_MARK)
    ? content.subarray(UTF8_MARK.length)
    : content;
}

/** Reads such a file. @throws Error also of the file system */
export const readText = (file: string): string => withoutMark(readFileSync(file)).toString('utf8');
