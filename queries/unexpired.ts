import { DAY } from '../domain/kernel/time.ts';
import { BackendTimeout } from '../http/errors/failures.ts';

/** Until then an expired item answers 410, then 404 (contract, Sessions). */
const REPORTED_AS_EXPIRED_MS = 60 * DAY;

export interface UnexpiredReads<Row> {
  readonly row: () => Promise<Row | null>;
  /** When it expired, where it is not kept any more (ISO 8601); null: there was none. */
  readonly expiredAt: () => Promise<string | null>;
  /** Waits for the read models; asked on a miss alone. false: they are too far behind to say so. */
  readonly caughtUp: () => Promise<boolean>;
}

/**
 * What has not expired, by the clock and not by what was swept; else whether there was one. `now` in milliseconds.
 * @throws BackendTimeout rather than call unknown what may be there
 */
export const findUnexpired = async <Row extends { readonly expires_at: string }>(
  reads: UnexpiredReads<Row>,
  now: number,
): Promise<Row | 'gone' | 'unknown'> => {
  let row = await reads.row();
  let expiredAt = row?.expires_at ?? (await reads.expiredAt());
  if (expiredAt === null) {
    if (!(await reads.caughtUp())) throw new BackendTimeout('the read models are behind');
    row = await reads.row();
    expiredAt = row?.expires_at ?? null;
  }
  if (expiredAt === null || now >= Date.parse(expiredAt) + REPORTED_AS_EXPIRED_MS) return 'unknown';
  return row !== null && now < Date.parse(expiredAt) ? row : 'gone';
};
