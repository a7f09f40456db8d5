/** Stores around the embedded one that behave like other stores, or die. */
import type pg from 'pg';
import { type EventStore, WrongExpectedRevision } from '../../event-store/port.ts';

/**
 * Keeps the events of deleted streams, as EventStoreDB does before a scavenge: reads of the stream find none,
 * followers still get them. `pool`: of the store's database.
 */
export const holdingStore = (store: EventStore, pool: () => pg.Pool): EventStore => ({
  ...store,
  expire: async (stream, last) => {
    const { rows } = await pool().query<{ revision: number }>(
      `with head as (select name, revision from eventlog.stream where name = $1 for update),
            done as (update eventlog.stream s set expired = true from head
                     where s.name = head.name and head.revision <= $2)
       select revision from head`,
      [stream, last],
    );
    const revision = rows[0]?.revision ?? last;
    if (revision > last) throw new WrongExpectedRevision(stream, revision);
  },
  truncateBefore: async (stream, revision) => {
    await pool().query(
      `update eventlog.stream set truncated_before = greatest(truncated_before, least($2, revision + 1))
       where name = $1`,
      [stream, revision],
    );
  },
});

export class Killed extends Error {}

/** Dies at its n-th call, counted from 0, before or after its effect, and does nothing more. */
export const dyingStore = (store: EventStore, n: number, when: 'before' | 'after') => {
  let calls = 0;
  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    const number = calls;
    calls += 1;
    if (number > n || (number === n && when === 'before')) throw new Killed();
    const result = await work();
    if (number === n) throw new Killed();
    return result;
  };
  const dying: EventStore = {
    ...store,
    head: () => call(store.head),
    append: (...args) => call(() => store.append(...args)),
    expire: (...args) => call(() => store.expire(...args)),
    truncateBefore: (...args) => call(() => store.truncateBefore(...args)),
    readStream: async function* (...args) {
      yield* await call(() => Array.fromAsync(store.readStream(...args)));
    },
  };
  return { store: dying, hasDied: () => calls > n };
};

/**
 * Acts as a cluster's leader: an event that is not replicated refuses later appends, and no read shows it; it becomes
 * visible, or is lost with the leader.
 */
export const leadingStore = (store: EventStore) => {
  let replicates = true;
  let reads = 0;
  /** Revisions that are not replicated. */
  const hidden = new Map<string, { readonly first: number; readonly last: number }>();
  const lost = new Map<string, number>();
  const leading: EventStore = {
    ...store,
    append: async (stream, expected, events) => {
      const gone = lost.get(stream);
      lost.delete(stream);
      if (gone !== undefined) throw new WrongExpectedRevision(stream, gone);
      const appended = await store.append(stream, expected, events);
      const { revision: last } = appended;
      const first = hidden.get(stream)?.first ?? last - events.length + 1;
      if (!replicates) hidden.set(stream, { first, last });
      return appended;
    },
    readStream: async function* (stream, options) {
      reads += 1;
      for await (const event of store.readStream(stream, options)) {
        if (event.revision < (hidden.get(stream)?.first ?? Number.POSITIVE_INFINITY)) yield event;
      }
    },
  };
  return {
    store: leading,
    reads: () => reads,
    /** Later appends are not replicated. */
    hold: (): void => {
      replicates = false;
    },
    /** Shows all events to readers from now on. */
    replicate: (): void => {
      replicates = true;
      hidden.clear();
    },
    /** Refuses one append to the stream because of a revision that never becomes visible. */
    refuseOnce: (stream: string, actual: number): void => {
      lost.set(stream, actual);
    },
  };
};
