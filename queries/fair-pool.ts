import { setTimeout } from 'node:timers/promises';
import type { DatabasePool } from 'slonik';
import { ShareUsedUp } from '../http/failures.ts';
import { answerWaitMs, servedPartner } from '../http/on-behalf-of.ts';
import { createSemaphore, createSemaphores } from '../platform/semaphore.ts';
import { POOL_SIZE } from '../platform/slonik.ts';

export interface FairShare {
  /** Queries of one partner at once. */
  readonly atOnce: number;
  /** Queries of one partner that may wait for those. */
  readonly waiting: number;
  /** How long, in milliseconds. */
  readonly waitMs: number;
}

/**
 * Half of the pool (`platform/slonik.ts`). A hundred reveals of one partner in a moment are usual, and a caller waits no
 * longer than a request may take.
 */
const SHARE: FairShare = { atOnce: 2, waiting: 1_000, waitMs: 4_000 };

/**
 * Limits how many queries each partner has under way, so that one with a long history does not keep all connections
 * busy, and paces a partner whose answers are long. Work that is for no partner is not limited. A query that waits for
 * too long, or behind too many, is a ShareUsedUp.
 */
export const fairPool = (
  db: DatabasePool,
  { atOnce: room, waiting, waitMs: patienceMs }: FairShare = SHARE,
): DatabasePool => {
  const refusal = (why: string): Error => new ShareUsedUp(`queries of the partner: ${why}`);
  const gates = createSemaphores({ limit: room, maxWaiting: waiting, maxWaitMs: patienceMs, refusal });
  // Queries that wait inside slonik's pool may wait for ever after a crash of PostgreSQL, and stopped read models with them.
  const connections = createSemaphore({ limit: POOL_SIZE });

  const limited =
    <Args extends unknown[], Result>(query: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const partnerId = servedPartner();
      const run = (): Promise<Result> => connections.enter(() => query(...args));
      if (partnerId === undefined) return run();
      return gates.enter(partnerId, async () => {
        const waitMs = answerWaitMs(partnerId);
        if (waitMs > 0) await setTimeout(Math.min(waitMs, patienceMs));
        return run();
      });
    };

  return {
    ...db,
    any: limited(db.any) as DatabasePool['any'],
    maybeOne: limited(db.maybeOne) as DatabasePool['maybeOne'],
    maybeOneFirst: limited(db.maybeOneFirst) as DatabasePool['maybeOneFirst'],
    one: limited(db.one) as DatabasePool['one'],
    oneFirst: limited(db.oneFirst) as DatabasePool['oneFirst'],
  };
};
