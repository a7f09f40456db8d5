export interface StormOptions {
  /** The duration of load and faults; the checks take some minutes more. */
  readonly minutes: number;
  /** Decides the order of the faults, their victims and the load. */
  readonly seed: number;
  /** An `esdb://` URL; undefined: events are in PostgreSQL. */
  readonly eventStoreUrl?: string | undefined;
  /** Called as `COMMAND start|stop|kill|freeze|thaw NODE`; undefined: no fault of EventStoreDB nodes. */
  readonly clusterCommand?: string | undefined;
  /** Injects only the faults that have this in their names; undefined: all. */
  readonly only?: string | undefined;
  /** Whether a storm of upgrades begins with a month of the release before this one. */
  readonly month?: boolean | undefined;
  /** An existing folder for the processes' whole logs; undefined: they are not kept. */
  readonly logFolder?: string | undefined;
  /** Receives progress, a line each. */
  readonly say: (line: string) => void;
}
