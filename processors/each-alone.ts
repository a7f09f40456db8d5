import { StoreUnavailable } from '../event-store/port.ts';

/**
 * Does the work of each item in turn. One that fails, such as a stream that its partner keeps changing, keeps none of the others from
 * theirs; the store's failure would be that of all.
 * @throws the first failure, after the others' work; StoreUnavailable at once
 */
export const eachAlone = async <T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> => {
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
};
