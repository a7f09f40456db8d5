import { createHash } from 'node:crypto';
import { ensureKeyFile, readKeyFile } from './master-key-file.ts';
import { type Sealer, sealerFrom } from './sealing.ts';

/** Something sealed, and the id of the key that it was sealed under, which does not tell the key. */
export interface Sealed {
  readonly master_key_id: string;
  readonly sealed: Buffer;
}

/**
 * The key under which all other keys and secrets are sealed at rest; while it is being changed, also the one before,
 * which opens and seals no more.
 */
export interface MasterKey {
  /** `about` binds the text to what it is of: it opens with the same words alone. */
  seal(plain: Buffer, about?: string): Sealed;
  /** @throws when it was sealed under a key that is not at hand, or for something else, or was changed */
  open(sealed: Sealed, about?: string): Buffer;
  /** Of the key that seals. */
  currentId(): string;
}

interface IdentifiedKey extends Sealer {
  readonly id: string;
}

/** The one that seals, then those that open as well. */
type Keys = readonly [IdentifiedKey, ...IdentifiedKey[]];

const identified = (key: Buffer): IdentifiedKey => ({
  id: createHash('sha256').update('doorplate master key id').update(key).digest('hex').slice(0, 16),
  ...sealerFrom(key),
});

/** `keys`: as they are now. `known`: as they were when they were last asked for. */
const masterKeyBy = (keys: () => Keys, known: () => Keys): MasterKey => {
  const byId = (id: string) => (key: IdentifiedKey) => key.id === id;
  return {
    seal: (plain, about) => {
      const [{ id, seal }] = keys();
      return { master_key_id: id, sealed: seal(plain, about) };
    },
    open: ({ master_key_id: id, sealed }, about) => {
      const key = known().find(byId(id)) ?? keys().find(byId(id));
      if (key) return key.open(sealed, about);
      throw new Error('MASTER_KEY is not the one that the keys in this database are sealed under');
    },
    currentId: () => keys()[0].id,
  };
};

/** `previous`: keys that open and seal no more. */
export const masterKeyFrom = (key: Buffer, ...previous: readonly Buffer[]): MasterKey => {
  const keys: Keys = [identified(key), ...previous.map(identified)];
  return masterKeyBy(
    () => keys,
    () => keys,
  );
};

/** What the configuration says of the key: each 32 bytes in base64. */
export interface ConfiguredKeys {
  readonly MASTER_KEY?: string | undefined;
  readonly MASTER_KEY_PREVIOUS?: string | undefined;
}

/**
 * The configured keys, or those of the data folder, of which the first is made on the first start. The folder is asked
 * whenever something is sealed, which is seldom, so that running processes follow when the key is changed.
 */
export const loadMasterKey = (configured: ConfiguredKeys, dataDir: string): MasterKey => {
  const { MASTER_KEY: key, MASTER_KEY_PREVIOUS: previous } = configured;
  if (key) return masterKeyFrom(fromBase64(key), ...(previous ? [fromBase64(previous)] : []));
  const file = ensureKeyFile(dataDir);
  let known: Keys;
  const read = (): Keys => {
    const [current, ...others] = readKeyFile(file);
    known = [identified(current), ...others.map(identified)];
    return known;
  };
  known = read();
  return masterKeyBy(read, () => known);
};

const fromBase64 = (text: string): Buffer => Buffer.from(text, 'base64');

/** A sealed secret as events and JSON columns keep it. */
export interface SealedText {
  readonly master_key_id: string;
  /** In base64. */
  readonly sealed: string;
}

export const sealText = (master: MasterKey, plain: Buffer, about: string): SealedText => {
  const { master_key_id, sealed } = master.seal(plain, about);
  return { master_key_id, sealed: sealed.toString('base64') };
};

/** @throws what `open` throws */
export const openText = (master: MasterKey, { master_key_id, sealed }: SealedText, about: string): Buffer =>
  master.open({ master_key_id, sealed: fromBase64(sealed) }, about);
