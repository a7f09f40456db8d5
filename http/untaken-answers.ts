interface CutSocket {
  destroy(): unknown;
  /** Absent where requests come without a network. */
  resetAndDestroy?(): unknown;
}

/** Answers that stay in memory because their callers do not read them. */
export interface UntakenAnswers {
  /** Cuts the connection unless the caller takes the answer, of this size, in time. `owner`: the network of the caller. */
  add(
    socket: CutSocket,
    response: { once(event: 'finish' | 'close', listener: () => void): unknown },
    bytes: number,
    owner: string,
  ): void;
}

export interface UntakenLimits {
  readonly writeMs: number;
  /** Of all answers together: beyond it, those of the owner with most are cut that have waited longest. */
  readonly bytes: number;
}

/** Of one owner. */
interface Waiting {
  bytes: number;
  /** Cuts each, the oldest first. */
  readonly cuts: Map<object, () => void>;
}

export const createUntakenAnswers = ({ writeMs, bytes: limit }: UntakenLimits): UntakenAnswers => {
  const byOwner = new Map<string, Waiting>();
  let total = 0;

  /** Of the owner with most that has an older one than the newest of all. @returns what cuts its oldest */
  const oldestOfMost = (newest: object): (() => void) | undefined => {
    let most = 0;
    let found: (() => void) | undefined;
    for (const { bytes, cuts } of byOwner.values()) {
      const [response, cut] = cuts.entries().next().value ?? [newest];
      if (response === newest || bytes <= most) continue;
      most = bytes;
      found = cut;
    }
    return found;
  };

  const cutBeyond = (newest: object): void => {
    while (total > limit) {
      const cut = oldestOfMost(newest);
      if (cut === undefined) return;
      cut();
    }
  };

  return {
    add: (socket, response, bytes, owner) => {
      const own = byOwner.get(owner) ?? { bytes: 0, cuts: new Map() };
      const forget = (): void => {
        clearTimeout(timer);
        if (!own.cuts.delete(response)) return;
        own.bytes -= bytes;
        total -= bytes;
        if (own.cuts.size === 0) byOwner.delete(owner);
      };
      const cut = (): void => {
        forget();
        // The kernel would keep megabytes of the answer, and the connection, for minutes after a normal close.
        if (socket.resetAndDestroy) socket.resetAndDestroy();
        else socket.destroy();
      };
      const timer = setTimeout(cut, writeMs);
      byOwner.set(owner, own);
      own.cuts.set(response, cut);
      own.bytes += bytes;
      total += bytes;
      response.once('finish', forget);
      response.once('close', forget);
      cutBeyond(response);
    },
  };
};
