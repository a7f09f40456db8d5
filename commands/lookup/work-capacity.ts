import type { Position } from '../../event-store/port.ts';
import type { WorkCapacity } from './submit-lookup.ts';

export interface WorkCapacityOptions {
  /** The shared intake's rate, of which `asker` has its part; null admits, else the milliseconds to wait. */
  readonly admitIntake: (asker: string) => Promise<null | { readonly retryMs: number }>;
  /** How many enrichments the read model knows to be unfinished, other than those of the addresses given. */
  readonly countOutstanding: (except: readonly string[]) => Promise<number>;
  readonly outstandingLimit: number;
  /** Resolves when the read model has a position, or a short time is over. */
  readonly projected: (position: Position) => Promise<unknown>;
}

/** Of the limit: well below it the count of a second ago is good enough. */
const NEAR = 0.9;
const MARGIN = 100;
const STALE_MS = 1_000;
const RETRY_SECONDS = 15;

/**
 * Outstanding work over all partners has no stream of its own: it is what the read model counts and what
 * this process has submitted and not yet seen there. Exact in one process.
 */
export const createWorkCapacity = (options: WorkCapacityOptions): WorkCapacity => {
  const { admitIntake, countOutstanding, outstandingLimit, projected } = options;
  const underWay = new Map<string, number>();
  let known = { count: 0, at: Number.NEGATIVE_INFINITY };
  let admittedSince = 0;
  let counting: Promise<number> | null = null;

  const count = async (): Promise<number> => {
    const own = [...underWay.keys()];
    const others = await countOutstanding(own);
    known = { count: others + own.length, at: performance.now() };
    admittedSince = 0;
    return known.count;
  };

  const hasRoom = async (): Promise<boolean> => {
    const roomy = known.count + admittedSince + underWay.size + MARGIN < outstandingLimit * NEAR;
    if (roomy && performance.now() - known.at < STALE_MS) return true;
    // Far below the limit one count serves all who wait for it; near it, each counts what came before it.
    if (!roomy) return (await count()) <= outstandingLimit;
    counting ??= count().finally(() => {
      counting = null;
    });
    return (await counting) <= outstandingLimit;
  };

  const takeRoom = async (asker: string): ReturnType<WorkCapacityOptions['admitIntake']> =>
    (await hasRoom()) ? admitIntake(asker) : { retryMs: RETRY_SECONDS * 1_000 };

  const leave = (ip: string): void => {
    const left = (underWay.get(ip) ?? 1) - 1;
    if (left === 0) underWay.delete(ip);
    else underWay.set(ip, left);
  };

  return {
    admit: async (ip, asker) => {
      const others = underWay.get(ip) ?? 0;
      underWay.set(ip, others + 1);
      // Callers who ask for the same address at once will share one piece of work.
      const wait = others > 0 ? null : await takeRoom(asker);
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
