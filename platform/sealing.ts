import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE = 12;
const TAG = 16;

/** Seals under one key. `about` binds the text to what it is of: it opens with the same words alone. */
export interface Sealer {
  seal(plain: Buffer, about?: string): Buffer;
  /** @throws when the text was not sealed under this key and for this, or was changed */
  open(sealed: Buffer, about?: string): Buffer;
}

/** AES-256-GCM under 32 bytes: nonce, tag, then the sealed text. */
export const sealerFrom = (key: Buffer): Sealer => ({
  seal: (plain, about = '') => {
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(about));
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  },
  open: (sealed, about = '') => {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE));
    decipher.setAAD(Buffer.from(about)).setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
    return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
  },
});
