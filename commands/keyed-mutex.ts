/** Serializes work per key: concurrent work on one stream would only cause conflicts. */
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
