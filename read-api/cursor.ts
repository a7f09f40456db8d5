import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Positions in a list as callers hold them: opaque, and of no use to another partner or under another filter. `of` says
 * whose list it is, and filtered by what.
 */
export interface Cursors {
  seal(place: bigint, of: string): string;
  /** null: the text is no cursor of that list. */
  open(text: string, of: string): bigint | null;
}

const PLACE_BYTES = 8;
const MAC_BYTES = 16;

export const createCursors = (key: Buffer): Cursors => {
  const padKey = createHmac('sha256', key).update('positions in cursors').digest();
  /** Hides a position, and shows it again: how far the log has come in a time is nobody's business. */
  const masked = (place: Buffer, mac: Buffer): Buffer => {
    const pad = createHmac('sha256', padKey).update(mac).digest();
    return Buffer.from(place.map((byte, at) => byte ^ (pad[at] as number)));
  };
  const macOf = (place: Buffer, of: string): Buffer =>
    createHmac('sha256', key).update(place).update(of).digest().subarray(0, MAC_BYTES);
  return {
    seal: (place, of) => {
      const bytes = Buffer.alloc(PLACE_BYTES);
      bytes.writeBigInt64BE(place);
      const mac = macOf(bytes, of);
      return Buffer.concat([masked(bytes, mac), mac]).toString('base64url');
    },
    open: (text, of) => {
      const bytes = Buffer.from(text, 'base64url');
      // Decoding skips what is no base64: only the one spelling that was handed out is a cursor.
      if (bytes.length !== PLACE_BYTES + MAC_BYTES || bytes.toString('base64url') !== text) return null;
      const mac = bytes.subarray(PLACE_BYTES);
      const shown = bytes.subarray(0, PLACE_BYTES);
      // Cursors of before show their position, and are good for ever.
      const place = [masked(shown, mac), shown].find((one) => timingSafeEqual(mac, macOf(one, of)));
      return place?.readBigInt64BE() ?? null;
    },
  };
};
