import { MINUTE } from '../domain/kernel/time.ts';

const LINES_A_MINUTE = 60;

interface Written {
  readonly since: number;
  lines: number;
  leftOut: number;
}

/**
 * Limits log lines that callers cause, to 60 a minute of each kind: a failure that lasts would write one for each request.
 * @param now monotonic, milliseconds
 * @returns a function that counts a line; it returns how many of the kind were left out since the last one, null if this one is
 * left out too. It keeps every kind: there must be few.
 */
export const createLineLimit = (
  now: () => number = () => performance.now(),
): ((kind: string) => number | null) => {
  const written = new Map<string, Written>();
  return (kind) => {
    const before = written.get(kind);
    const isOver = before === undefined || now() - before.since >= MINUTE;
    const current = isOver ? { since: now(), lines: 0, leftOut: before?.leftOut ?? 0 } : before;
    written.set(kind, current);
    const { leftOut } = current;
    const isAdmitted = current.lines < LINES_A_MINUTE;
    current.lines += 1;
    current.leftOut = isAdmitted ? 0 : leftOut + 1;
    return isAdmitted ? leftOut : null;
  };
};
