import { randomFillSync } from 'node:crypto';
import { v7 as uuid } from 'uuid';

const BYTES = 16;
/** Asking for random bytes costs the same for one id as for many. */
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

/** A UUID of version 7: those of later milliseconds sort after it, which keeps indexes small. */
export const newId = (): string => uuid({ rng });
