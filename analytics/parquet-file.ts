import { open } from 'node:fs/promises';
import type { SchemaElement } from 'hyparquet';
import type { Cell, RowFile } from './row-file.ts';
import type { ColumnType, View } from './view.ts';

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
export const parquetFile = async (path: string, { columns }: View): Promise<RowFile> => {
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
};

const inFile = (type: ColumnType, cell: Cell): Cell =>
  type === 'day' && typeof cell === 'string' ? new Date(cell) : cell;
