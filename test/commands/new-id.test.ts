import { version } from 'uuid';
import { describe, expect, it } from 'vitest';
import { newId } from '../../commands/handle.ts';

describe('a new id', () => {
  it('is unique and sorts after the ids of earlier milliseconds', async () => {
    const ids = Array.from({ length: 5_000 }, newId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(ids.map(version))).toEqual(new Set([7]));
    const started = Date.now();
    while (Date.now() <= started);
    expect(newId() > (ids.toSorted().at(-1) ?? '')).toBe(true);
  });
});
