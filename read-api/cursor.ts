import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type Epoch, resumeAt } from '../domain/epochs/epochs.ts';

/**
 * Positions in a list as callers hold them: opaque, and of no use to another partner or under another filter. `of` says
 * whose list it is, and filtered by what.
 */
export interface Cursors {
  seal(position: bigint, of: string): Promise<string>;
  /** The position that was sealed. null: the text is no cursor of that list. */
  open(text: string, of: string): Promise<bigint | null>;
  /** Where a list goes on that grows at its end: earlier than what was sealed where a restore has taken events back. */
  resume(text: string, of: string): Promise<bigint | null>;
}

/** The epochs of the log, of which the last one is now; `again`: read afresh. */
export interface EpochsOfLog {
  all(): Promise<readonly Epoch[]>;
  again(): Promise<readonly Epoch[]>;
}

const POSITION_BYTES = 8;
const EPOCH_BYTES = 8;
const MAC_BYTES = 16;

/** Empty where no epoch was ever begun: cursors of that time stay good. */
const tagOf = (epoch: Epoch | undefined): Buffer =>
  epoch === undefined
    ? Buffer.alloc(0)
    : createHash('sha256').update(epoch.epoch_id).digest().subarray(0, EPOCH_BYTES);

interface Opened {
  readonly position: bigint;
  readonly tag: Buffer;
}

export function createCursors(key: Buffer, epochs: EpochsOfLog): Cursors {
  const padKey = createHmac('sha256', key).update('positions in cursors').digest();
  /** Encrypts and decrypts a position, so that callers cannot see how fast the log grows. */
  const masked = (body: Buffer, mac: Buffer): Buffer => {
    const pad = createHmac('sha256', padKey).update(mac).digest();
    return Buffer.from(body.map((byte, at) => byte ^ (pad[at] as number)));
  };
  const macOf = (body: Buffer, of: string): Buffer =>
    createHmac('sha256', key).update(body).update(of).digest().subarray(0, MAC_BYTES);

  const opened = (text: string, of: string): Opened | null => {
    const bytes = Buffer.from(text, 'base64url');
    const size = bytes.length - MAC_BYTES;
    // Decoding ignores invalid characters, so compare with the canonical spelling.
    if (bytes.toString('base64url') !== text) return null;
    if (size !== POSITION_BYTES && size !== POSITION_BYTES + EPOCH_BYTES) return null;
    const mac = bytes.subarray(size);
    const shown = bytes.subarray(0, size);
    // Cursors of before show their position, and are good for ever.
    const body = [masked(shown, mac), shown].find((one) => timingSafeEqual(mac, macOf(one, of)));
    return body ? { position: body.readBigInt64BE(), tag: body.subarray(POSITION_BYTES) } : null;
  };

  return {
    seal: async (position, of) => {
      const bytes = Buffer.alloc(POSITION_BYTES);
      bytes.writeBigInt64BE(position);
      const body = Buffer.concat([bytes, tagOf((await epochs.all()).at(-1))]);
      const mac = macOf(body, of);
      return Buffer.concat([masked(body, mac), mac]).toString('base64url');
    },
    open: async (text, of) => opened(text, of)?.position ?? null,
    resume: async (text, of) => {
      const cursor = opened(text, of);
      if (cursor === null) return null;
      const { position, tag } = cursor;
      const isOwn = tag.length === 0 ? null : (epoch: Epoch): boolean => tagOf(epoch).equals(tag);
      const known = await epochs.all();
      const all = isOwn === null || known.some(isOwn) ? known : await epochs.again();
      return resumeAt(all, position, isOwn);
    },
  };
}
