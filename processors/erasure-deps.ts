import type { Consumers } from './consumers.ts';
import type { ProcessorDeps } from './deps.ts';
import type { Reached } from './retire-streams.ts';

/** What erasures of any kind of data need. */
export interface ErasureDeps extends ProcessorDeps {
  /** Progress of the read models. */
  readonly progress: Reached;
  /** Returns the consumers of a kind of streams, by the prefix of their names. */
  readonly consumersOf: (prefix: string) => Consumers;
  readonly signal: AbortSignal;
}
