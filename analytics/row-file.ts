/** A cell's value; days are text as YYYY-MM-DD. */
export type Cell = string | number | bigint | boolean | Date | null;

/** A file in progress. Rows have the view's order of columns. */
export interface RowFile {
  write(rows: readonly (readonly Cell[])[]): Promise<void>;
  /** Completes the file; resolves when all of it is on disk. */
  end(): Promise<void>;
  /** Releases resources. May be called after `end`. */
  close(): Promise<void>;
}
