import { describe, expect, it } from 'vitest';
import { hashPassword, isPassword, newPassword } from '../../platform/crypto/passwords.ts';

/** The hash of the password `x` with a salt of zeros by another implementation (@node-rs/argon2 2.2.1). */
const OTHERS =
  '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$dRzY82fgceWJKqstlAB6sn56dYrekptRpYPqbR1lZQg';

describe('a password', () => {
  it('is verified by its hash, and no other is', async () => {
    const hash = await hashPassword('three wise words');
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await isPassword('three wise words', hash)).toBe(true);
    expect(await isPassword('three wise word', hash)).toBe(false);
    expect(await hashPassword('three wise words')).not.toBe(hash);
  });

  it('is verified by a hash of another implementation', async () => {
    expect(await isPassword('x', OTHERS)).toBe(true);
    expect(await isPassword('y', OTHERS)).toBe(false);
  });

  it('is the same in composed and decomposed Unicode', async () => {
    expect(await isPassword('cafe\u0301 au lait', await hashPassword('caf\u00e9 au lait'))).toBe(true);
  });

  it('never matches when no hash exists', async () => {
    expect(await isPassword('anything', null)).toBe(false);
  });

  it('is different each time one is generated', () => {
    const many = Array.from({ length: 100 }, newPassword);
    expect(new Set(many).size).toBe(100);
    expect(many.every((one) => /^([a-z2-9]{5}-){3}[a-z2-9]{5}$/.test(one))).toBe(true);
  });
});
