import { randomFillSync } from 'node:crypto';
import { v7 as uuid } from 'uuid';

const BYTES = 16;
/** Random bytes are drawn for many ids at once, because each call has a fixed cost. */
const pool = Buffer.alloc(256 * BYTES);
let used = pool.length;

const rng = (): Uint8Array => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.subarray(used - BYTES, used);
};

/** Makes a UUID v7: later ids sort after earlier ones, which keeps indexes small. */
export const newId = (): string => uuid({ rng });
