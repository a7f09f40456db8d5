import { StoreUnavailable } from '../event-store/port.ts';

/** Deletions at one moment share a statement in PostgreSQL, for which appends wait: few enough that it takes a millisecond or two. */
const MAX_CONCURRENT_DELETIONS = 16;

/** Runs a few at a time. After a failure no further item starts. */
export async function inParallel<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const queue = (function* () {
    yield* items;
  })();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_DELETIONS }, worker));
}

/**
 * Does the work of each item in turn. One that fails, such as a stream that its partner keeps changing, keeps none of the others from
 * theirs; the store's failure would be that of all.
 * @throws the first failure, after the others' work; StoreUnavailable at once
 */
export async function forEachIsolated<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
