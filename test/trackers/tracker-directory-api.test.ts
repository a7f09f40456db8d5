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
const aDirectory = (waitForHead: () => Promise<boolean> = async () => true) => {
  const asked: ((rows: readonly unknown[]) => void)[] = [];
  const query = () =>
    new Promise((resolve) => {
      asked.push((rows) => resolve({ rows }));
    });
  const directory = createTrackerDirectory({ pool: { query } as unknown as pg.Pool, waitForHead });
  return { directory, asked };
};

describe('the directory of trackers', () => {
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
});
