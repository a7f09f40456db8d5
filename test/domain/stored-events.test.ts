import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { LaterVersion, readEvent } from '../../domain/kernel/events.ts';

const schemas = {
  'visits.Visited.v1': z.object({ page: z.string() }),
  'visits.Visited.v2': z.object({ pages: z.array(z.string()) }),
  'visits.Left.v1': z.object({ page: z.string(), seconds: z.int().default(0) }),
};

describe('a stored event', () => {
  it('is read by the schema of its own version', () => {
    const old = { type: 'visits.Visited.v1', data: { page: '/' } };
    const later = { type: 'visits.Visited.v2', data: { pages: ['/'] } };
    expect([readEvent(schemas, old), readEvent(schemas, later)]).toEqual([old, later]);
  });

  it('gets the default of a missing field and loses an unknown field', () => {
    const event = readEvent(schemas, { type: 'visits.Left.v1', data: { page: '/', device: 'phone' } });
    expect(event?.data).toEqual({ page: '/', seconds: 0 });
  });

  it('is skipped when its name is unknown', () => {
    expect(readEvent(schemas, { type: 'visits.Returned.v1', data: {} })).toBeNull();
    expect(readEvent(schemas, { type: 'visits.Returned.v2', data: {} })).toBeNull();
    expect(readEvent(schemas, { type: 'toString', data: {} })).toBeNull();
  });

  it('is not skipped when only its version is unknown', () => {
    const later = { type: 'visits.Visited.v3', data: { page: '/', urls: [] } };
    expect(() => readEvent(schemas, later)).toThrow(LaterVersion);
    expect(() => readEvent(schemas, later)).toThrow(/wrote visits.Visited.v3: upgrade this one/);
  });
});
