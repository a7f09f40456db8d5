import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';

/** Signs short texts with Ed25519. */
export interface Signer {
  /** SubjectPublicKeyInfo (RFC 8410), DER in base64. */
  readonly publicKey: string;
  /** @returns the signature of the text's UTF-8 bytes, in base64 */
  sign(text: string): string;
  /** @returns whether the signature (base64) of the text is from this key */
  verify(text: string, signature: string): boolean;
}

/** Prefix of the 32 bytes of a private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Creates a signer from the 32 bytes of an Ed25519 private key. */
export const signerFrom = (key: Buffer): Signer => {
  const der = Buffer.concat([PKCS8_PREFIX, key]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(privateKey);
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64'),
    verify: (text, signature) => verify(null, Buffer.from(text), publicKey, Buffer.from(signature, 'base64')),
  };
};
