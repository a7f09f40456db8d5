/** Low, so that concurrent appends hardly wait for deletions. */
const MAX_CONCURRENT_DELETIONS = 4;

/** Runs a few at a time. After a failure no further item starts. */
export const inParallel = async <T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> => {
  const queue = (function* () {
    yield* items;
  })();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_DELETIONS }, worker));
};
