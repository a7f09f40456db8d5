import type { Position } from '../../event-store/port.ts';
import { coalesceNext } from '../../platform/limits/coalesce.ts';
import type { WorkCapacity, WorkPurpose } from './submit-lookup.ts';

export interface WorkCapacityOptions {
  /** Admits to the shared intake's rate; null admits, otherwise the wait in milliseconds. */
  readonly admitIntake: (purpose: WorkPurpose) => Promise<null | { readonly retryMs: number }>;
  /** Counts unfinished enrichments in the read model, except those of the given addresses. */
  readonly countOutstanding: (except: readonly string[]) => Promise<number>;
  readonly outstandingLimit: number;
  /** Resolves when the read model reaches the position, or after a short time limit. */
  readonly projected: (position: Position) => Promise<unknown>;
}

/** null: admitted. */
type Wait = Awaited<ReturnType<WorkCapacityOptions['admitIntake']>>;

/** The requests for one address, and the verdict on the newest that did not share another's. */
interface Work {
  callers: number;
  wait: Promise<Wait>;
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
export function createWorkCapacity(options: WorkCapacityOptions): WorkCapacity {
  const underWay = new Map<string, Work>();
  const takeRoom = createRoom(options, underWay);

  /** Concurrent requests for one address share one enrichment, unless the first one is refused. */
  const enter = async (ip: string, purpose: WorkPurpose): Promise<Wait> => {
    const present = underWay.get(ip);
    if (present !== undefined) {
      present.callers += 1;
      const isShared = await present.wait.then(
        (wait) => wait === null,
        () => false,
      );
      if (isShared) return null;
    }
    const work = underWay.get(ip) ?? { callers: 1, wait: Promise.resolve(null) };
    underWay.set(ip, work);
    work.wait = takeRoom(ip, purpose);
    return work.wait;
  };

  const leave = (ip: string): void => {
    const work = underWay.get(ip);
    if (work === undefined) return;
    work.callers -= 1;
    if (work.callers === 0) underWay.delete(ip);
  };

  return {
    admit: async (ip, purpose) => {
      const wait = await enter(ip, purpose).catch((error: unknown) => {
        leave(ip);
        throw error;
      });
      if (wait) {
        leave(ip);
        return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil(wait.retryMs / 1_000)) };
      }
      return {
        ok: true,
        finished: (position) => {
          if (position === null) leave(ip);
          else {
            const left = () => leave(ip);
            options.projected(position).then(left, left);
          }
        },
      };
    },
  };
}

/** Returns what admits an address beside those under way in this process, by the ceiling and the intake's rate. */
function createRoom(
  { admitIntake, countOutstanding, outstandingLimit }: WorkCapacityOptions,
  underWay: ReadonlyMap<string, Work>,
): (ip: string, purpose: WorkPurpose) => Promise<Wait> {
  let known = { count: 0, at: Number.NEGATIVE_INFINITY };
  let admittedSince = 0;

  // A count reads all that is outstanding, so callers share it. Each is admitted by its rank among the addresses of this process.
  const count = coalesceNext(async () => {
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

  return async (ip, purpose) => {
    const wait = (await hasRoom(ip)) ? await admitIntake(purpose) : { retryMs: RETRY_SECONDS * 1_000 };
    if (wait === null) admittedSince += 1;
    return wait;
  };
}
