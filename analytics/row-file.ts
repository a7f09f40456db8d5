/** A cell as it comes: null, text, whole numbers, booleans, instants, and days as YYYY-MM-DD. */
export type Cell = string | number | bigint | boolean | Date | null;

/** A file that is being written, rows in the view's order of columns. */
export interface RowFile {
  write(rows: readonly (readonly Cell[])[]): Promise<void>;
  /** Nothing comes any more: all is on the disk when it resolves. */
  end(): Promise<void>;
  /** Gives up what it holds. May be called after `end`. */
  close(): Promise<void>;
}
