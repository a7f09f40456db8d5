import { randomUUID } from 'node:crypto';
import { open, rename, rm, stat } from 'node:fs/promises';
import pg from 'pg';
import { connect } from './connect.ts';
import { csvFile } from './csv-file.ts';
import { parquetFile } from './parquet-file.ts';
import type { Cell } from './row-file.ts';
import { findView, type View } from './view.ts';

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

export interface Exported {
  readonly view: string;
  readonly rows: number;
  readonly bytes: number;
}

const FETCHED_AT_ONCE = 5_000;

/**
 * Exports a view, as of one moment, to a file ordered by the view's time. Rows are fetched and written in batches to a
 * temporary file, which is renamed at the end.
 * @throws UnknownView, pg's and the file system's errors
 */
export const exportView = async (options: ExportOptions): Promise<Exported> => {
  const { url, format, out, signal } = options;
  const db = await connect(url, 'doorplate export', CELLS);
  const partial = `${out}.${randomUUID()}.partial`;
  try {
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
};

const FETCH = `fetch forward ${FETCHED_AT_ONCE} from exported`;

const queryOf = ({ name, columns, time }: View, { from, to, limit }: ExportOptions): string => {
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
};

const { builtins, getTypeParser } = pg.types;

/** Like pg's parsers, but bigint keeps its precision and dates stay text. */
const CELLS: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    if (oid === builtins.INT8) return BigInt;
    if (oid === builtins.DATE) return String;
    return getTypeParser(oid, format);
  },
};
