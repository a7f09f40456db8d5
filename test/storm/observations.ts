/** What clients observed during a storm, and how long each kind of request was out of service after a fault. */

export const REQUEST_KINDS = [
  'submission',
  'lookup',
  'capture',
  'feed page',
  'reveal',
  'receipt',
  'session in feed',
  'webhook delivery',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** One request: when it was sent and answered, milliseconds of the monotonic clock. */
export interface Observation {
  readonly kind: RequestKind;
  readonly sentAt: number;
  readonly endedAt: number;
  readonly outcome: 'success' | 'unavailable' | 'cut';
}

/** A fault that was injected: from `startedAt` on, until it was lifted. */
export interface InjectedFault {
  readonly name: string;
  readonly startedAt: number;
  readonly liftedAt: number;
  /** When all processes reported that they are ready again; null: not within the limit. */
  readonly readyAt: number | null;
  /** When the clients that had waited for the end of the fault were all served; null: the fault has none. */
  readonly servedAt: number | null;
}

export interface Recovery {
  readonly fault: string;
  readonly kind: RequestKind;
  /** The longest time without a success between the start of the fault and the start of the next. */
  readonly longestGapSeconds: number;
  /** From the end of the fault to the first success of a request sent after it; null: none before the next fault. */
  readonly afterEndSeconds: number | null;
  readonly unavailable: number;
  readonly cut: number;
}

/** Computes the recovery of every kind of request from every fault, in the order of the faults. */
export const recoveries = (
  observations: readonly Observation[],
  faults: readonly InjectedFault[],
  loadEndedAt: number,
): Recovery[] =>
  faults.flatMap((fault, index) => {
    const until = faults[index + 1]?.startedAt ?? loadEndedAt;
    const during = observations.filter(({ endedAt }) => endedAt >= fault.startedAt && endedAt < until);
    return REQUEST_KINDS.map((kind) =>
      recoveryOf(
        fault,
        until,
        kind,
        during.filter((one) => one.kind === kind),
      ),
    );
  });

const recoveryOf = (
  { name, startedAt, liftedAt }: InjectedFault,
  until: number,
  kind: RequestKind,
  during: readonly Observation[],
): Recovery => {
  const successes = during.filter(({ outcome }) => outcome === 'success');
  const times = [startedAt, ...successes.map(({ endedAt }) => endedAt).toSorted((a, b) => a - b), until];
  const gaps = times.slice(1).map((time, index) => time - (times[index] as number));
  const after = successes.filter(({ sentAt }) => sentAt >= liftedAt).map(({ endedAt }) => endedAt - liftedAt);
  return {
    fault: name,
    kind,
    longestGapSeconds: seconds(Math.max(...gaps)),
    afterEndSeconds: after.length === 0 ? null : seconds(Math.min(...after)),
    unavailable: during.filter(({ outcome }) => outcome === 'unavailable').length,
    cut: during.filter(({ outcome }) => outcome === 'cut').length,
  };
};

const seconds = (milliseconds: number): number => Math.round(milliseconds / 100) / 10;
