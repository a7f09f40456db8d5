import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { createTrackerDirectory, type ListedTracker } from '../../queries/trackers/directory.ts';

const id = randomUUID();
const tracker = (disabled: boolean): ListedTracker => ({
  tracker_id: id,
  partner_id: randomUUID(),
  origins: ['https://www.example.com'],
  customer_reference: null,
  disabled,
  deleted: false,
});

/** A directory over a read model that answers on command. */
const aDirectory = (caughtUp: () => Promise<boolean> = async () => true) => {
  const asked: ((rows: readonly unknown[]) => void)[] = [];
  const query = () =>
    new Promise((resolve) => {
      asked.push((rows) => resolve({ rows }));
    });
  const directory = createTrackerDirectory({ pool: { query } as unknown as pg.Pool, caughtUp });
  return { directory, asked };
};

describe('the directory of trackers', () => {
  it('asks once for all simultaneous callers, and for those soon after', async () => {
    const { directory, asked } = aDirectory();
    const finds = [directory.find(id), directory.find(id)];
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.([tracker(false)]);
    expect(await Promise.all(finds)).toMatchObject([{ tracker_id: id }, { tracker_id: id }]);
    expect(directory.find(id)).toMatchObject({ tracker_id: id });
    expect(asked).toHaveLength(1);
  });

  it('does not keep what was read before a change that it is notified of', async () => {
    const { directory, asked } = aDirectory();
    const before = directory.find(id);
    await expect.poll(() => asked.length).toBe(1);
    directory.forget(id);
    const after = directory.find(id);
    asked[0]?.([tracker(false)]);
    expect(await before).toMatchObject({ disabled: false });
    await expect.poll(() => asked.length).toBe(2);
    asked[1]?.([tracker(true)]);
    expect(await after).toMatchObject({ disabled: true });
    expect(await directory.find(id)).toMatchObject({ disabled: true });
  });

  it('says that there is none only when the read models know', async () => {
    const { directory, asked } = aDirectory();
    const found = directory.find(id);
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.([]);
    await expect.poll(() => asked.length).toBe(2);
    asked[1]?.([tracker(false)]);
    expect(await found).toMatchObject({ tracker_id: id });

    const late = aDirectory(async () => false);
    const unknown = late.directory.find(id);
    await expect.poll(() => late.asked.length).toBe(1);
    late.asked[0]?.([]);
    await expect(unknown).rejects.toThrow('behind');
  });

  it('waits once for all ids that do not exist, and reads those again together, however many a visitor makes up', async () => {
    let waits = 0;
    let reads = 0;
    const made = randomUUID();
    const query = async ({ values: [ids] }: { values: [string[]] }) => {
      reads += 1;
      const rows = waits > 0 && ids.includes(made) ? [{ ...tracker(false), tracker_id: made }] : [];
      return { rows };
    };
    const caughtUp = async () => {
      waits += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return true;
    };
    const { find } = createTrackerDirectory({ pool: { query } as unknown as pg.Pool, caughtUp });
    const strange = Array.from({ length: 100 }, () => find(randomUUID()));
    expect(await find(made)).toMatchObject({ tracker_id: made });
    expect(await Promise.all(strange)).toEqual(Array(100).fill(null));
    expect(waits).toBeLessThanOrEqual(2);
    expect(reads).toBeLessThanOrEqual(2 + 2);
  });

  it('asks about no origin that a tracker cannot have, however many a visitor makes up', () => {
    const { directory, asked } = aDirectory();
    for (const origin of ['null', 'x'.repeat(15_000), 'http://example.com', 'https://example.com/path'])
      expect(directory.anyAllows(origin)).toBe(false);
    expect(asked).toHaveLength(0);
  });
});
