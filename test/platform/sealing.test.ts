import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { sealerFrom } from '../../platform/crypto/master-key.ts';

describe('a sealed text', () => {
  const sealer = sealerFrom(randomBytes(32));
  const text = Buffer.from('of a visitor');

  it('opens unchanged under its key and for its purpose', () => {
    const sealed = sealer.seal(text, 'a');
    expect(sealer.open(sealed, 'a')).toEqual(text);
    expect(sealed.includes(text)).toBe(false);
    expect(() => sealer.open(sealed, 'b')).toThrow();
    expect(() => sealerFrom(randomBytes(32)).open(sealed, 'a')).toThrow();
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(sealed.length - 1) ^ 1, sealed.length - 1);
    expect(() => sealer.open(changed, 'a')).toThrow();
  });

  it('does not open with a shortened tag, which is easier to guess', () => {
    const sealed = sealer.seal(Buffer.alloc(0), 'a');
    expect(sealer.open(sealed, 'a')).toHaveLength(0);
    for (const tag of [4, 8, 12, 15]) expect(() => sealer.open(sealed.subarray(0, 12 + tag), 'a')).toThrow();
  });

  it('always has a new nonce, and contains it', () => {
    const sealed = Array.from({ length: 1_000 }, () => sealer.seal(text));
    expect(new Set(sealed.map((bytes) => bytes.subarray(0, 12).toString('hex'))).size).toBe(1_000);
    for (const bytes of sealed) expect(sealer.open(bytes)).toEqual(text);
  });
});
