/** Runs the work on one thing one after the other: side by side it would only meet at its stream's revision. */
export const createTurns = () => {
  const turns = new Map<string, Promise<unknown>>();
  return <T>(id: string, work: () => Promise<T>): Promise<T> => {
    const before = turns.get(id);
    const mine = before === undefined ? work() : before.then(work, work);
    turns.set(id, mine);
    const leave = (): void => {
      if (turns.get(id) === mine) turns.delete(id);
    };
    mine.then(leave, leave);
    return mine;
  };
};
