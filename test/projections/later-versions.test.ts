import type pg from 'pg';
import { expect, it } from 'vitest';
import { LaterVersion } from '../../domain/kernel/events.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';
import { allProjections } from '../../projections/all.ts';
import { relevantTo } from '../../projections/projection.ts';

const db = { query: () => Promise.reject(new Error('nothing may be written')) } as unknown as pg.ClientBase;

const event = (type: string): RecordedEvent => ({
  id: '00000000-0000-4000-8000-000000000001',
  type,
  stream: 'a-stream',
  revision: 0,
  position: 1n as Position,
  data: {},
  metadata: { $correlationId: 'c', $causationId: 'c', at: '2026-11-22T00:00:00.000Z' },
});

it.each(allProjections.map((one) => [one.name, one] as const))(
  'the projection %s stops at later versions of its events and skips events that it does not know',
  async (_, projection) => {
    expect(relevantTo(projection, [event('later.Happened.v1'), event('later.Happened.v2')])).toEqual([]);
    for (const type of projection.types ?? []) {
      const later = [event(type.replace(/\.v\d+$/, '.v99'))];
      expect(relevantTo(projection, later), type).toEqual(later);
      await expect(projection.apply(later, db), type).rejects.toThrow(LaterVersion);
    }
  },
);
