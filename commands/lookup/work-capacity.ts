import type { Position } from '../../event-store/port.ts';
import { shareNext } from '../../platform/share-next.ts';
import type { WorkCapacity } from './submit-lookup.ts';

export interface WorkCapacityOptions {
  /** Admits to the shared intake's rate, of which `asker` has a part; null admits, otherwise the wait in milliseconds. */
  readonly admitIntake: (asker: string) => Promise<null | { readonly retryMs: number }>;
  /** Counts unfinished enrichments in the read model, except those of the given addresses. */
  readonly countOutstanding: (except: readonly string[]) => Promise<number>;
  readonly outstandingLimit: number;
  /** Resolves when the read model reaches the position, or after a short time limit. */
  readonly projected: (position: Position) => Promise<unknown>;
}

/** Share of the limit, and margin, below which a count up to `STALE_MS` old is accurate enough. */
const NEAR_LIMIT = 0.9;
const MARGIN = 100;
const STALE_MS = 1_000;
const RETRY_SECONDS = 15;

/**
 * Creates the admission of enrichments. The number outstanding is the read model's count plus those that this process has
 * submitted and not yet seen there: exact with one process, approximate with several.
 */
export const createWorkCapacity = (options: WorkCapacityOptions): WorkCapacity => {
  const { admitIntake, countOutstanding, outstandingLimit, projected } = options;
  const underWay = new Map<string, number>();
  let known = { count: 0, at: Number.NEGATIVE_INFINITY };
  let admittedSince = 0;

  // A count reads all that is outstanding, so callers share it. Each is admitted by its rank among the addresses of this process.
  const count = shareNext(async () => {
    const own = [...underWay.keys()];
    const others = await countOutstanding(own);
    known = { count: others + own.length, at: performance.now() };
    admittedSince = 0;
    return { others, ranks: new Map(own.map((ip, index) => [ip, index + 1])) };
  });

  const hasRoom = async (ip: string): Promise<boolean> => {
    const roomy = known.count + admittedSince + underWay.size + MARGIN < outstandingLimit * NEAR_LIMIT;
    if (roomy && performance.now() - known.at < STALE_MS) return true;
    const { others, ranks } = await count();
    return others + (ranks.get(ip) ?? 0) <= outstandingLimit;
  };

  const takeRoom = async (ip: string, asker: string): ReturnType<WorkCapacityOptions['admitIntake']> =>
    (await hasRoom(ip)) ? admitIntake(asker) : { retryMs: RETRY_SECONDS * 1_000 };

  const leave = (ip: string): void => {
    const left = (underWay.get(ip) ?? 1) - 1;
    if (left === 0) underWay.delete(ip);
    else underWay.set(ip, left);
  };

  return {
    admit: async (ip, asker) => {
      const others = underWay.get(ip) ?? 0;
      underWay.set(ip, others + 1);
      // Concurrent requests for one address share one enrichment.
      const wait = others > 0 ? null : await takeRoom(ip, asker);
      if (wait) {
        leave(ip);
        return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil(wait.retryMs / 1_000)) };
      }
      if (others === 0) admittedSince += 1;
      return {
        ok: true,
        finished: (position) => {
          if (position === null) leave(ip);
          else {
            const left = () => leave(ip);
            projected(position).then(left, left);
          }
        },
      };
    },
  };
};
