import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCursors } from '../../read-api/cursor.ts';

const KEY = randomBytes(32);
const cursors = createCursors(KEY);

/** As cursors were before: the position in the clear, and a digest of it. */
const oldCursor = (place: bigint, of: string): string => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(place);
  const mac = createHmac('sha256', KEY).update(bytes).update(of).digest().subarray(0, 16);
  return Buffer.concat([bytes, mac]).toString('base64url');
};

describe('a cursor', () => {
  it('opens for its own list alone, and is always the same', () => {
    const text = cursors.seal(4711n, 'mine');
    expect(cursors.seal(4711n, 'mine')).toBe(text);
    expect(cursors.open(text, 'mine')).toBe(4711n);
    expect(cursors.open(text, 'yours')).toBeNull();
    expect(createCursors(randomBytes(32)).open(text, 'mine')).toBeNull();
    expect(cursors.open(`${text}A`, 'mine')).toBeNull();
    expect(cursors.open(`A${text.slice(1)}`, 'mine') === 4711n && !text.startsWith('A')).toBe(false);
  });

  it('does not show its position', () => {
    const bytes = Array.from({ length: 200 }, (_, at) =>
      Buffer.from(cursors.seal(BigInt(at), 'mine'), 'base64url').subarray(0, 8),
    );
    // A small position in the clear begins with zeros.
    expect(bytes.filter((one) => one.readUInt32BE() === 0)).toEqual([]);
    expect(new Set(bytes.map((one) => one[0])).size).toBeGreaterThan(50);
  });

  it('of before is still good', () => {
    for (const place of [0n, 1n, 4711n, 2n ** 62n]) {
      expect(cursors.open(oldCursor(place, 'mine'), 'mine')).toBe(place);
      expect(cursors.open(oldCursor(place, 'mine'), 'yours')).toBeNull();
    }
  });
});
