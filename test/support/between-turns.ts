/** Watches how far a count grows between two turns of the event loop. @returns a function that ends it and returns the most */
export const mostBetweenTurns = (count: () => number): (() => number) => {
  let [before, most] = [0, 0];
  const turn = (): void => {
    most = Math.max(most, count() - before);
    before = count();
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  return () => {
    clearImmediate(next);
    return Math.max(most, count() - before);
  };
};
