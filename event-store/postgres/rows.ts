import type pg from 'pg';
import type { Position, RecordedEvent } from '../port.ts';

export const COLUMNS = 'e.position, e.stream, e.revision, e.id, e.type, e.data, e.metadata';

export const toRecordedEvent = (row: pg.QueryResultRow): RecordedEvent => ({
  position: BigInt(row.position) as Position,
  stream: row.stream,
  revision: row.revision,
  id: row.id,
  type: row.type,
  data: row.data,
  metadata: row.metadata,
});
