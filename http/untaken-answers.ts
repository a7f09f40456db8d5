interface CutSocket {
  destroy(): unknown;
  /** Absent where requests come without a network. */
  resetAndDestroy?(): unknown;
}

/** Answers that stay in memory because their callers do not read them. */
export interface UntakenAnswers {
  /** Cuts the connection unless the caller takes the answer, of this size, in time. */
  add(
    socket: CutSocket,
    response: { once(event: 'finish' | 'close', listener: () => void): unknown },
    bytes: number,
  ): void;
}

export interface UntakenLimits {
  readonly writeMs: number;
  /** Of all answers together: beyond it, those that have waited longest are cut. */
  readonly bytes: number;
}

export const createUntakenAnswers = ({ writeMs, bytes: most }: UntakenLimits): UntakenAnswers => {
  const waiting = new Map<object, () => void>();
  let total = 0;
  return {
    add: (socket, response, bytes) => {
      const forget = (): void => {
        clearTimeout(timer);
        if (waiting.delete(response)) total -= bytes;
      };
      const cut = (): void => {
        forget();
        // The kernel would keep megabytes of the answer, and the connection, for minutes after a normal close.
        if (socket.resetAndDestroy) socket.resetAndDestroy();
        else socket.destroy();
      };
      const timer = setTimeout(cut, writeMs);
      waiting.set(response, cut);
      total += bytes;
      response.once('finish', forget);
      response.once('close', forget);
      for (const [oldest, cutOldest] of waiting) {
        if (total <= most || oldest === response) break;
        cutOldest();
      }
    },
  };
};
