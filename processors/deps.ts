import type pg from 'pg';
import type { EventStore } from '../event-store/port.ts';
import type { Clock } from '../platform/clock/clock.ts';

/** What most processors and scheduled jobs need. */
export interface ProcessorDeps {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
}
