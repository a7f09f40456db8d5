import type { Position } from '../../event-store/port.ts';
import type { WorkCapacity } from './submit-lookup.ts';

export interface WorkCapacityOptions {
  /** The shared intake's rate; null admits, else the milliseconds to wait. */
  readonly admitIntake: () =>
    | Promise<null | { readonly retryMs: number }>
    | null
    | { readonly retryMs: number };
  /** How many enrichments the read model knows to be unfinished, other than those of the addresses given. */
  readonly countOutstanding: (except: readonly string[]) => Promise<number>;
  readonly outstandingLimit: number;
  /** Resolves when the read model has a position, or a short time is over. */
  readonly projected: (position: Position) => Promise<unknown>;
}

/** Of the limit: below it the count of a second ago is good enough. */
const NEAR = 0.9;
const STALE_MS = 1_000;
const RETRY_SECONDS = 15;

/**
 * Outstanding work over all partners has no stream of its own: it is what the read model counts and what
 * this process has submitted and not yet seen there. Exact in one process.
 */
export const createWorkCapacity = (options: WorkCapacityOptions): WorkCapacity => {
  const { admitIntake, countOutstanding, outstandingLimit, projected } = options;
  const underWay = new Set<string>();
  let known = { count: 0, at: Number.NEGATIVE_INFINITY };
  let admittedSince = 0;

  const hasRoom = async (): Promise<boolean> => {
    const guess = known.count + admittedSince;
    if (performance.now() - known.at < STALE_MS && guess < outstandingLimit * NEAR) return true;
    const own = [...underWay];
    const count = await countOutstanding(own);
    known = { count: count + own.length, at: performance.now() };
    admittedSince = 0;
    return known.count <= outstandingLimit;
  };

  return {
    admit: async (ip) => {
      underWay.add(ip);
      const room = await hasRoom();
      const wait = room ? await admitIntake() : { retryMs: RETRY_SECONDS * 1_000 };
      if (wait) {
        underWay.delete(ip);
        return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil(wait.retryMs / 1_000)) };
      }
      admittedSince += 1;
      return {
        ok: true,
        finished: (position) => {
          if (position === null) underWay.delete(ip);
          else void projected(position).finally(() => underWay.delete(ip));
        },
      };
    },
  };
};
