/**
 * Counts the slots (fields, elements, entries) of objects that a fold has created since the last call, which is what
 * a step had to copy. Objects shared with earlier states count nothing, so a persistent map costs a path and a copied
 * map its size.
 */
export const createCopyCounter = (): ((state: unknown) => number) => {
  const seen = new WeakSet<object>();
  const count = (value: unknown): number => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return 0;
    seen.add(value);
    const children =
      value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : Object.values(value);
    return children.reduce<number>((slots, child) => slots + count(child), children.length);
  };
  return count;
};
