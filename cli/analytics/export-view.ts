import { open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { SchemaElement } from 'hyparquet';
import pg from 'pg';
import { type CsvCell, csvRow } from '../../platform/csv.ts';
import { openClient } from '../../platform/postgres/pool.ts';
import { lockTarget, partialName, removePartials } from './export-lock.ts';
import { type ColumnType, findView, type View } from './views.ts';

/** A cell's value; days are text as YYYY-MM-DD. */
export type Cell = CsvCell;

/** A file in progress. Rows have the view's order of columns. */
export interface RowFile {
  write(rows: readonly (readonly Cell[])[]): Promise<void>;
  /** Completes the file; resolves when all of it is on disk. */
  end(): Promise<void>;
  /** Releases resources. May be called after `end`. */
  close(): Promise<void>;
}

/** Creates a CSV file: line feeds, UTF-8, a header line. */
export async function csvFile(path: string, { columns }: View): Promise<RowFile> {
  const handle = await open(path, 'a');
  const lines = (rows: readonly (readonly Cell[])[]): string =>
    rows.map((row) => `${csvRow(row)}\n`).join('');
  await handle.appendFile(lines([columns.map(({ name }) => name)]));
  return {
    write: (rows) => handle.appendFile(lines(rows)),
    end: () => handle.datasync(),
    close: () => handle.close(),
  };
}

/** Rows held in memory, column by column, before they are written. */
const ROW_GROUP = 50_000;

const ELEMENTS: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT32' },
  bigint: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  // Older readers know only the first; the second marks the instant as UTC.
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  day: { type: 'INT32', converted_type: 'DATE' },
};

/** Writes Apache Parquet with Snappy compression: UUIDs as text, instants as UTC milliseconds, all columns nullable. */
export async function parquetFile(path: string, { columns }: View): Promise<RowFile> {
  // Fifty modules, which other commands need not load.
  const { fileWriter, ParquetWriter } = await import('hyparquet-writer');
  const schema: SchemaElement[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(
      ({ name, type }): SchemaElement => ({ name, ...ELEMENTS[type], repetition_type: 'OPTIONAL' }),
    ),
  ];
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, createdBy: 'doorplate' });
  let held: Cell[][] = columns.map(() => []);

  const flush = async (): Promise<void> => {
    const columnData = columns.map(({ name }, index) => ({ name, data: held[index] ?? [] }));
    held = columns.map(() => []);
    await writer.write({ columnData, rowGroupSize: ROW_GROUP });
  };

  return {
    write: async (rows) => {
      columns.forEach(({ type }, index) => {
        for (const row of rows) held[index]?.push(inFile(type, row[index] ?? null));
      });
      if ((held[0]?.length ?? 0) >= ROW_GROUP) await flush();
    },
    end: async () => {
      await flush();
      await writer.finish();
      const handle = await open(path, 'r+');
      await handle.datasync().finally(() => handle.close());
    },
    close: async () => {
      held = [];
    },
  };
}

const inFile = (type: ColumnType, cell: Cell): Cell =>
  type === 'day' && typeof cell === 'string' ? new Date(cell) : cell;

export type Format = 'csv' | 'parquet';

export interface ExportOptions {
  readonly url: string;
  readonly view: string;
  readonly format: Format;
  /** Path of the file; an existing one is replaced after the new one is complete. */
  readonly out: string;
  /** Only rows from this instant on, by the view's time, ISO 8601. */
  readonly from?: string;
  readonly to?: string;
  /** Maximum number of rows, earliest first. */
  readonly limit?: number;
  /** Aborts the export, leaving no file. */
  readonly signal?: AbortSignal;
}

interface Exported {
  readonly view: string;
  readonly rows: number;
  readonly bytes: number;
}

const FETCHED_AT_ONCE = 5_000;

/**
 * Exports a view, as of one moment, to a file ordered by the view's time. Rows are fetched and written in batches to a
 * temporary file, which is renamed at the end.
 * @throws TargetBusy, UnknownView, pg's and the file system's errors
 */
export async function exportView(options: ExportOptions): Promise<Exported> {
  const { url, format, out, signal } = options;
  const db = await openClient(url, 'doorplate export', { types: CELLS });
  const partial = partialName(out);
  try {
    const [folder, name] = [dirname(out), basename(out)];
    await lockTarget(db, folder, name);
    await removePartials(folder, name);
    await db.query(`begin isolation level repeatable read read only; set local timezone to 'UTC'`);
    const view = await findView(db, options.view);
    // A file of another user under a guessed name, in /tmp for example, is never written to.
    await (await open(partial, 'wx', 0o600)).close();
    const file = await (format === 'csv' ? csvFile : parquetFile)(partial, view);
    let rows = 0;
    try {
      await db.query(`declare exported no scroll cursor for ${queryOf(view, options)}`);
      for (;;) {
        signal?.throwIfAborted();
        const fetched = await db.query<Cell[]>({ text: FETCH, rowMode: 'array' });
        if (fetched.rows.length === 0) break;
        await file.write(fetched.rows);
        rows += fetched.rows.length;
      }
      await file.end();
    } finally {
      await file.close();
    }
    const { size: bytes } = await stat(partial);
    await rename(partial, out);
    return { view: view.name, rows, bytes };
  } finally {
    await rm(partial, { force: true });
    await db.end();
  }
}

const FETCH = `fetch forward ${FETCHED_AT_ONCE} from exported`;

function queryOf({ name, columns, time }: View, { from, to, limit }: ExportOptions): string {
  const id = pg.escapeIdentifier;
  const instant = (at: string): string => `${pg.escapeLiteral(new Date(at).toISOString())}::timestamptz`;
  const bounds = [
    ...(from === undefined ? [] : [`${id(time)} >= ${instant(from)}`]),
    ...(to === undefined ? [] : [`${id(time)} < ${instant(to)}`]),
  ];
  return [
    `select ${columns.map((column) => id(column.name)).join(', ')} from analytics.${id(name)}`,
    ...(bounds.length === 0 ? [] : [`where ${bounds.join(' and ')}`]),
    `order by ${id(time)}`,
    ...(limit === undefined ? [] : [`limit ${limit}`]),
  ].join(' ');
}

const { builtins, getTypeParser } = pg.types;

/** Like pg's parsers, but bigint keeps its precision and dates stay text. */
export const CELLS: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    if (oid === builtins.INT8) return BigInt;
    if (oid === builtins.DATE) return String;
    return getTypeParser(oid, format);
  },
};
