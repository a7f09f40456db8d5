import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Epoch } from '../../domain/epochs/epochs.ts';
import { createCursors } from '../../read-api/cursor.ts';

const KEY = randomBytes(32);
const inLog = (epochs: readonly Epoch[], later = epochs) =>
  createCursors(KEY, { all: async () => epochs, again: async () => later });
const cursors = inLog([]);
const epoch = (after: bigint): Epoch => ({ epoch_id: randomUUID(), after });

/** Cursors of earlier versions: the position in the clear, and a digest of it. */
const oldCursor = (position: bigint, of: string): string => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(position);
  const mac = createHmac('sha256', KEY).update(bytes).update(of).digest().subarray(0, 16);
  return Buffer.concat([bytes, mac]).toString('base64url');
};

describe.each([
  ['before any restore', cursors],
  ['after a restore', inLog([epoch(5_000n)])],
])('a cursor %s', (_, cursors) => {
  it('opens for its own list alone, and is always the same', async () => {
    const text = await cursors.seal(4711n, 'mine');
    expect(await cursors.seal(4711n, 'mine')).toBe(text);
    expect(await cursors.open(text, 'mine')).toBe(4711n);
    expect(await cursors.open(text, 'yours')).toBeNull();
    expect(await cursors.resume(text, 'mine')).toBe(4711n);
    expect(await cursors.resume(text, 'yours')).toBeNull();
    const others = createCursors(randomBytes(32), { all: async () => [], again: async () => [] });
    expect(await others.open(text, 'mine')).toBeNull();
    for (const forged of [
      `${text}A`,
      text.slice(0, -1),
      `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`,
    ]) {
      expect(await cursors.open(forged, 'mine')).toBeNull();
    }
  });

  it('does not show its position', async () => {
    const sealed = Array.from({ length: 200 }, (_, at) => cursors.seal(BigInt(at), 'mine'));
    const bytes = (await Promise.all(sealed)).map((text) => Buffer.from(text, 'base64url').subarray(0, 8));
    // A small position in the clear begins with zeros.
    expect(bytes.filter((one) => one.readUInt32BE() === 0)).toEqual([]);
    expect(new Set(bytes.map((one) => one[0])).size).toBeGreaterThan(50);
  });

  it('of an earlier version is still valid', async () => {
    for (const position of [0n, 1n, 4711n, 2n ** 62n]) {
      expect(await cursors.open(oldCursor(position, 'mine'), 'mine')).toBe(position);
      expect(await cursors.open(oldCursor(position, 'mine'), 'yours')).toBeNull();
    }
  });
});

describe('a feed whose log was restored from an older backup', () => {
  const [first, second] = [epoch(40n), epoch(70n)];

  it('continues at the end of the backup with a cursor from before the restore', async () => {
    const text = await cursors.seal(90n, 'mine');
    expect(await inLog([first]).resume(text, 'mine')).toBe(40n);
    const later = await inLog([first]).seal(90n, 'mine');
    expect(await inLog([first, second]).resume(later, 'mine')).toBe(70n);
  });

  it('keeps the position of a cursor from after the restore, also in a process that does not know the epoch', async () => {
    const text = await inLog([first, second]).seal(90n, 'mine');
    expect(await inLog([first], [first, second]).resume(text, 'mine')).toBe(90n);
  });

  it('continues at the earlier backup with a cursor of an epoch that a later restore lost', async () => {
    const lost = await inLog([first, second]).seal(90n, 'mine');
    expect(await inLog([first]).resume(lost, 'mine')).toBe(40n);
    expect(await cursors.resume(lost, 'mine')).toBe(0n);
  });
});
