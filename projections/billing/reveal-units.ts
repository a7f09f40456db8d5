import { billingEvents } from '../../domain/billing/events.ts';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { toJson } from '../tables.ts';

interface Row {
  readonly reveal_id: string;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly key_id: string | null;
  readonly user_id: string | null;
  readonly completed_at: string;
  readonly units: number;
  readonly position: string;
  readonly ledger_number: number | null;
  readonly changed_position: string;
}

const schemas = { ...revealEvents, ...billingEvents };

/**
 * Projects completed reveals and their units. Receipts expire with their session, after which only the ledger entry is left;
 * either event makes the same row.
 */
export const revealUnits: Projection = {
  name: 'reveal-units',
  tables: ['reveal_unit'],
  types: Object.keys(schemas),
  async apply(events, db) {
    const rows = new Map<string, Row>();
    for (const stored of events) {
      const row = rowOf(stored);
      if (row === null) continue;
      const first = rows.get(row.reveal_id);
      const isEntered = first === undefined || (first.ledger_number === null && row.ledger_number !== null);
      const { ledger_number, changed_position } = isEntered ? row : first;
      rows.set(row.reveal_id, { ...(first ?? row), ledger_number, changed_position });
    }
    if (rows.size === 0) return;
    await db.query({ name: 'upsert_reveal_units', text: UPSERT, values: [toJson(rows.values())] });
  },
};

function rowOf(stored: RecordedEvent): Row | null {
  const changed_position = stored.position.toString();
  const event = readEvent(schemas, stored);
  switch (event?.type) {
    case undefined:
    case 'reveals.RevealRequested.v1':
      return null;
    case 'reveals.RevealCompleted.v1': {
      const { billable, result: _, ...data } = event.data;
      const units = billable ? 1 : 0;
      return { ...data, units, position: changed_position, ledger_number: null, changed_position };
    }
    case 'billing.RevealBilled.v1':
      return { ...event.data, ledger_number: stored.revision, changed_position };
    default:
      return unreachable(event);
  }
}

const COLUMNS =
  'reveal_id, partner_id, tracker_id, key_id, user_id, completed_at, units, position, ledger_number, changed_position';

const UPSERT = `
  insert into reveal_unit as present (${COLUMNS})
  select ${COLUMNS} from json_populate_recordset(null::reveal_unit, $1)
  on conflict (reveal_id) do update
    set ledger_number = excluded.ledger_number, changed_position = excluded.changed_position
    where present.ledger_number is null and excluded.ledger_number is not null`;
