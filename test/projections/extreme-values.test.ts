import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';
import { allProjections } from '../../projections/all.ts';
import { storableEvents } from '../../projections/projection.ts';
import { type ExtremeEvent, extremeEvent } from '../support/extreme-events.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  db = await stack.session(
    'set search_path to read; set synchronous_commit to off; set enable_seqscan to off',
  );
});
afterAll(() => stack.close());

const metadata = { $correlationId: 'c', $causationId: 'c', at: '2026-03-01T12:00:00.000Z' };
const recorded = (events: readonly ExtremeEvent[]): RecordedEvent[] =>
  events.map((event, index) => ({
    ...event,
    id: randomUUID(),
    metadata,
    revision: index,
    position: BigInt(index) as Position,
  }));

const RUNS = Number(process.env.EXTREME_RUNS ?? 50);

describe('an event with extreme values', () => {
  it('has a type that the catalogue lists, whatever the projection', () => {
    const known = eventCatalogue.flatMap(({ events }) => Object.keys(events));
    for (const { types } of allProjections) expect(known).toEqual(expect.arrayContaining([...(types ?? [])]));
  });

  it.each(allProjections.map((one) => [one.name, one] as const))(
    'does not stop the projection %s',
    async (_, projection) => {
      const events = fc.array(extremeEvent(projection.types ?? []), { minLength: 1, maxLength: 20 });
      await fc.assert(
        fc.asyncProperty(events, async (some) => {
          await db.query('begin');
          try {
            await projection.apply(storableEvents(recorded(some)), db);
          } finally {
            await db.query('rollback');
          }
        }),
        { numRuns: RUNS },
      );
    },
  );
});
