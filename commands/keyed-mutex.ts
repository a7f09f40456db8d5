/** Runs the work on one thing one after the other: side by side it would only meet at its stream's revision. */
export const createKeyedMutex = () => {
  const tails = new Map<string, Promise<unknown>>();
  return <T>(id: string, work: () => Promise<T>): Promise<T> => {
    const before = tails.get(id);
    const mine = before === undefined ? work() : before.then(work, work);
    tails.set(id, mine);
    const leave = (): void => {
      if (tails.get(id) === mine) tails.delete(id);
    };
    mine.then(leave, leave);
    return mine;
  };
};
