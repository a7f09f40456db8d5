import { randomInt } from 'node:crypto';

export interface BackoffLimits {
  readonly firstMs: number;
  readonly mostMs: number;
}

/**
 * Computes the delay before a retry: doubled with each failure, minus a random part of up to half, so that clients that
 * failed together do not retry together.
 * @param failures in a row, from 1
 * @returns milliseconds, at least half of `firstMs`
 */
export const backoffMs = (failures: number, { firstMs, mostMs }: BackoffLimits): number => {
  const full = Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.ceil(full / 2) + randomInt(0, Math.floor(full / 2) + 1);
};
