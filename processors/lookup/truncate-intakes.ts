import type pg from 'pg';
import { v7 as uuid } from 'uuid';
import { snapshotIntakeOf } from '../../commands/lookup/snapshot-intake.ts';
import { isAhead } from '../../domain/kernel/ahead.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { INTAKE_KEPT_DAYS, intakeStream } from '../../domain/lookup/intake.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import { eachAlone } from '../each-alone.ts';

export interface TruncateIntakesOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/** Truncates each intake before its newest snapshot past the retention period, and appends today's snapshot. */
export const truncateIntakes = async ({ store, pool, clock }: TruncateIntakesOptions): Promise<void> => {
  const now = clock.now();
  const before = now - INTAKE_KEPT_DAYS * DAY;
  const { rows } = await pool.query<{ partner_id: string }>('select partner_id from read.partner');
  await eachAlone(rows, async ({ partner_id }) => {
    const stream = intakeStream(partner_id);
    let snapshot: number | null = null;
    for await (const event of throttled(store.readStream(stream))) {
      const at = Date.parse(event.metadata.at);
      // A timestamp from a fast clock says nothing about the event's age; the events after it do.
      if (isAhead(at, now)) continue;
      if (at >= before) break;
      if (event.type === 'lookup.IntakeSnapshotted.v1') snapshot = event.revision;
    }
    if (snapshot !== null) await store.truncateBefore(stream, snapshot);
    const id = uuid();
    await snapshotIntakeOf(store, partner_id, { correlationId: id, causationId: id, at: now });
  });
};
