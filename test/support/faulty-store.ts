import { type EventStore, OutcomeUnknown } from '../../event-store/port.ts';

/** The fate of a call: an error, or no answer until the store is healed and then an unknown outcome. */
export type Fault = 'hangs' | (() => Error);

/** An event store that fails where a test says so. */
export interface FaultyStore {
  around(store: EventStore): EventStore;
  failAppends(prefix: string, fault: Fault): void;
  failReads(prefix: string, fault: Fault): void;
  heal(): void;
}

export const faultyStore = (): FaultyStore => {
  const appends = new Map<string, Fault>();
  const reads = new Map<string, Fault>();
  const hanging = new Set<() => void>();
  const hang = (): Promise<void> => new Promise((resolve) => hanging.add(resolve));
  const fail = async (faults: ReadonlyMap<string, Fault>, stream: string): Promise<void> => {
    for (const [prefix, fault] of faults) {
      if (!stream.startsWith(prefix)) continue;
      if (fault !== 'hangs') throw fault();
      await hang();
      throw new OutcomeUnknown('no answer in time');
    }
  };
  return {
    around: (store) => ({
      ...store,
      append: async (stream, expected, events) => {
        await fail(appends, stream);
        return store.append(stream, expected, events);
      },
      readStream: async function* (stream, options) {
        await fail(reads, stream);
        yield* store.readStream(stream, options);
      },
    }),
    failAppends: (prefix, fault) => void appends.set(prefix, fault),
    failReads: (prefix, fault) => void reads.set(prefix, fault),
    heal: () => {
      appends.clear();
      reads.clear();
      for (const resume of hanging) resume();
      hanging.clear();
    },
  };
};
