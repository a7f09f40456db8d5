import { createHash } from 'node:crypto';
import { ensureKeyFile, readKeyFile } from './master-key-file.ts';
import { type Sealer, sealerFrom } from './sealing.ts';

/** Sealed data, and the id of its key, which does not reveal the key. */
export interface Sealed {
  readonly master_key_id: string;
  readonly sealed: Buffer;
}

/** Seals all other keys and secrets at rest. During a change of the key, the previous one still opens. */
export interface MasterKey {
  /** Seals text. `about` binds it to a context: it opens only with the same `about`. */
  seal(plain: Buffer, about?: string): Sealed;
  /** Opens sealed text. @throws if the key is unknown, or the context or data differ */
  open(sealed: Sealed, about?: string): Buffer;
  currentId(): string;
}

interface IdentifiedKey extends Sealer {
  readonly id: string;
}

/** The sealing key, then further opening keys. */
type Keys = readonly [IdentifiedKey, ...IdentifiedKey[]];

const identified = (key: Buffer): IdentifiedKey => ({
  id: createHash('sha256').update('doorplate master key id').update(key).digest('hex').slice(0, 16),
  ...sealerFrom(key),
});

/** Creates a master key. `keys` reads the current keys; `known` returns those of the last read. */
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

/** Creates a master key from bytes. `previous`: keys that only open. */
export const masterKeyFrom = (key: Buffer, ...previous: readonly Buffer[]): MasterKey => {
  const keys: Keys = [identified(key), ...previous.map(identified)];
  return masterKeyBy(
    () => keys,
    () => keys,
  );
};

/** Configured keys, each 32 bytes in base64. */
export interface ConfiguredKeys {
  readonly MASTER_KEY?: string | undefined;
  readonly MASTER_KEY_PREVIOUS?: string | undefined;
}

/**
 * Loads the configured keys, or those of the data folder, created on the first start. The folder is read at every seal,
 * which is rare, so that running processes follow a change of the key.
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

/** A sealed secret as stored in events and JSON columns. */
export interface SealedText {
  readonly master_key_id: string;
  /** Base64. */
  readonly sealed: string;
}

export const sealText = (master: MasterKey, plain: Buffer, about: string): SealedText => {
  const { master_key_id, sealed } = master.seal(plain, about);
  return { master_key_id, sealed: sealed.toString('base64') };
};

/** Opens a sealed text. @throws what `open` throws */
export const openText = (master: MasterKey, { master_key_id, sealed }: SealedText, about: string): Buffer =>
  master.open({ master_key_id, sealed: fromBase64(sealed) }, about);
