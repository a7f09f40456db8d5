/** Reads logs line by line: files, folders and the standard input, packed or not, in any of the usual encodings. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { realTime, type Time } from '../time.ts';
import { identityOf } from './files.ts';
import {
  detectFormat,
  FORMATS_WITH_FIELDS,
  type Format,
  type FormatOptions,
  formatOf,
  type Read,
} from './formats.ts';

export interface LogLine {
  readonly text: string;
  readonly read: Read;
}

export interface Log {
  /** `-` is the standard input. */
  readonly path: string;
  readonly format: Format;
  readonly firstLine: string;
  readonly lines: AsyncIterable<LogLine>;
}

const SAMPLE_LINES = 50;
const FOLLOW_MS = 500;
/** After a rotation by renaming, a writer may hold the old file until it is told of it. */
const ROTATED_QUIET_MS = 5_000;

export interface Follow {
  readonly signal: AbortSignal;
  readonly time?: Time | undefined;
}

/**
 * The files in folders, sorted, and what else is named.
 * @param others files that may stand in a folder and are no logs
 * @throws Error for a folder without a file
 */
export const logPaths = async (
  named: readonly string[],
  others: readonly string[] = [],
): Promise<string[]> => {
  const leftOut = new Set(await Promise.all(others.map(identityOf)));
  const paths: string[] = [];
  for (const path of named) {
    const isFolder = async (): Promise<boolean> =>
      (await stat(path).catch(() => null))?.isDirectory() ?? false;
    if (path === '-' || !(await isFolder())) {
      paths.push(path);
      continue;
    }
    const files: string[] = [];
    for (const entry of await readdir(path, { recursive: true })) {
      const file = join(path, entry);
      // A link may lead nowhere.
      const isFile = (await stat(file).catch(() => null))?.isFile() ?? false;
      if (isFile && !leftOut.has(await identityOf(file))) files.push(file);
    }
    if (files.length === 0) throw new Error(`${path} is a folder without a file`);
    paths.push(...files.sort());
  }
  return paths;
};

/** @throws Error with one line for a file that cannot be read */
export const checkReadable = async (path: string): Promise<void> => (await opened(path)).close();

const opened = (path: string): Promise<FileHandle> =>
  open(path).catch((error: unknown) => {
    throw new Error(`${path} cannot be read: ${reasonOf(error)}`);
  });

/**
 * Opens a log and tells its format by its first lines. What may grow, as the standard input, is told as soon as a line has
 * an address: the next line may take hours.
 * @param follow goes on with what is appended, also to the file that replaces a rotated one, until `signal`
 * @throws Error with one line for a file that cannot be read
 */
export const openLog = async (path: string, options: FormatOptions, follow?: Follow): Promise<Log> => {
  const texts = entriesOf(follow ? followed(path, follow) : textsOf(path));
  const mayGrow = follow !== undefined || path === '-';
  const sample: string[] = [];
  while (sample.length < SAMPLE_LINES && !(mayGrow && hasAddress(sample, options))) {
    const next = await texts.next();
    if (next.done) break;
    sample.push(next.value);
  }
  const name = options.format ?? detectFormat(sample, options.field);
  const format = formatOf(name, options);
  if (sample.length > 0 && options.field !== undefined && !FORMATS_WITH_FIELDS.includes(name))
    throw new Error(
      `${path}: --field is for ${FORMATS_WITH_FIELDS.join(', ')} alone, and the log is read as ${name} (--format)`,
    );
  async function* lines(): AsyncGenerator<LogLine> {
    for (const text of sample) yield { text, read: format.read(text) };
    for await (const text of texts) yield { text, read: format.read(text) };
  }
  return { path, format, firstLine: sample[0] ?? '', lines: lines() };
};

const hasAddress = (sample: readonly string[], options: FormatOptions): boolean => {
  if (sample.length === 0) return false;
  const format = formatOf(options.format ?? detectFormat(sample, options.field), options);
  return sample.map(format.read).some((read) => read !== null && read !== 'header');
};

const JSON_ARRAY = /^\s*\[\s*(?:["{]|$)/;

/** The elements of a log that is one array of JSON, texts without their quotes; of any other its lines. */
async function* entriesOf(lines: AsyncGenerator<string>): AsyncGenerator<string> {
  const first = await lines.next();
  if (first.done) return;
  if (!JSON_ARRAY.test(first.value)) {
    yield first.value;
    yield* lines;
    return;
  }
  let [element, depth, quoted, escaped] = ['', 0, false, false];
  for (let line: IteratorResult<string> = first; !line.done; line = await lines.next()) {
    for (const letter of line.value) {
      const isInner = depth > 1 || (depth === 1 && (quoted || !/[,\]]/.test(letter)));
      if (!quoted && /[[{]/.test(letter)) depth += 1;
      else if (!quoted && /[\]}]/.test(letter)) depth -= 1;
      else if (letter === '"' && !escaped) quoted = !quoted;
      escaped = quoted && letter === '\\' && !escaped;
      if (isInner) element += letter;
      else if (element.trim() !== '') {
        yield unquoted(element.trim());
        element = '';
      }
    }
  }
}

/** What is no text of JSON stays as it is: a line without an address, like others. */
const unquoted = (element: string): string => {
  if (!element.startsWith('"')) return element;
  try {
    return String(JSON.parse(element));
  } catch {
    return element;
  }
};

/** The lines that are not empty. */
async function* textsOf(path: string): AsyncGenerator<string> {
  let pending = '';
  try {
    for await (const text of decoded(path === '-' ? process.stdin : createReadStream(path))) {
      const lines = (pending + text).split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') yield line.replace(/\r$/, '');
    }
  } catch (error) {
    throw new Error(`${path === '-' ? 'the standard input' : path} cannot be read: ${reasonOf(error)}`);
  }
  if (pending.trim() !== '') yield pending.replace(/\r$/, '');
}

const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a folder';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'Z_BUF_ERROR' || code === 'ZSTD_error_srcSize_wrong') return 'it is packed and ends too early';
  return message;
};

const startsWith = (bytes: Buffer, ...magic: number[]): boolean =>
  magic.every((byte, index) => bytes[index] === byte);

/** Unpacks by the first bytes, whatever the name, and decodes UTF-8 or, by its mark, UTF-16. */
async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const packed = await peeked(bytes, 4);
  const { head, all } = await peeked(unpacked(packed), 2);
  const encoding = startsWith(head, 0xff, 0xfe)
    ? 'utf-16le'
    : startsWith(head, 0xfe, 0xff)
      ? 'utf-16be'
      : 'utf-8';
  const decoder = new TextDecoder(encoding);
  for await (const chunk of all) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

const unpacked = ({ head, all }: Peeked): AsyncIterable<Buffer> => {
  if (startsWith(head, 0x1f, 0x8b)) return pipeline(all, zlib.createGunzip(), () => undefined);
  if (!startsWith(head, 0x28, 0xb5, 0x2f, 0xfd)) return all;
  // Node has it from 22.15 on.
  const { createZstdDecompress } = zlib as { createZstdDecompress?: () => Transform };
  if (createZstdDecompress === undefined) throw new Error(`Node ${process.version} cannot unpack zstd`);
  return pipeline(all, createZstdDecompress(), () => undefined);
};

interface Peeked {
  readonly head: Buffer;
  /** With the head. */
  readonly all: AsyncIterable<Buffer>;
}

const peeked = async (bytes: AsyncIterable<Buffer>, count: number): Promise<Peeked> => {
  const chunks = bytes[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < count) {
    const next = await chunks.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield head;
    yield* { [Symbol.asyncIterator]: () => chunks };
  }
  return { head, all: all() };
};

/** Yields the lines of a growing file. Reads from the start again when the file is truncated, or another replaces it. */
async function* followed(path: string, { signal, time = realTime }: Follow): AsyncGenerator<string> {
  const rest = (): Promise<void> => time.sleep(FOLLOW_MS, signal).catch(() => undefined);
  const buffer = Buffer.alloc(65_536);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const file = isFirst ? await opened(path) : await open(path).catch(() => null);
    if (file === null) {
      // It is being rotated.
      await rest();
      continue;
    }
    try {
      const { ino } = await file.stat();
      const decoder = new TextDecoder();
      let [position, pending] = [0, ''];
      let replacedAt: number | null = null;
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
        position += bytesRead;
        const lines = (pending + decoder.decode(buffer.subarray(0, bytesRead), { stream: true })).split('\n');
        pending = lines.pop() ?? '';
        for (const line of lines) if (line.trim() !== '') yield line.replace(/\r$/, '');
        if (bytesRead > 0) {
          replacedAt = null;
          continue;
        }
        if (signal.aborted) return;
        const now = await stat(path).catch(() => null);
        if (now?.ino === ino && now.size < position) break;
        if (now !== null && now.ino !== ino) {
          replacedAt ??= time.now();
          if (time.now() - replacedAt >= ROTATED_QUIET_MS) break;
        }
        await rest();
      }
      if (pending.trim() !== '') yield pending;
    } finally {
      await file.close();
    }
  }
}
