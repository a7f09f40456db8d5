import { type EventStore, type Position, type Revision, WrongExpectedRevision } from '../event-store/port.ts';
import type { Passage } from './consumers.ts';

/** A stream of which something has expired, as the read model knows it. */
export interface ExpiredStream {
  readonly stream: string;
  /** Of the last event that the read model still knows of. */
  readonly last_revision: Revision;
  /** Whether something in it has not expired. */
  readonly lives: boolean;
}

export interface RetireDeps {
  readonly store: EventStore;
  readonly consumerProgress: Passage;
  /** All consumers have passed this place, and with it all that the read model knows of the stream's expired part. */
  readonly passed: Position;
  readonly signal: AbortSignal;
}

/**
 * Deletes a stream that has expired, or of one that lives on what is before its first event that has not. Repeating it
 * is harmless. false: not yet, a later sweep finds it again.
 * @throws the port's errors but WrongExpectedRevision
 */
export const retireStream = async (deps: RetireDeps, known: ExpiredStream): Promise<boolean> => {
  const { store, consumerProgress, passed, signal } = deps;
  const { stream, last_revision, lives } = known;
  const further = lives ? null : await expire(store, stream, last_revision);
  if (further === 'done') return true;

  // The read model knows of more that lives, or the stream has gone on past what it knows.
  const head = await store.head();
  for await (const first of store.readStream(stream, { limit: 1 })) {
    // What is hidden before it stands before it in the log as well.
    if (first.position > passed) return false;
    await store.truncateBefore(stream, first.revision);
    return true;
  }
  // All of it is hidden, so that its last event's place cannot be asked for; it is not past the head.
  if (further === null || !(await consumerProgress.come(head, signal))) return false;
  // A refusal may be due to an event that no reader sees yet, and that has not expired: a later sweep decides.
  if (!(await shows(store, stream, further))) return false;
  return (await expire(store, stream, further)) === 'done';
};

const shows = async (store: EventStore, stream: string, revision: Revision): Promise<boolean> => {
  const read = { from: revision, limit: 1, includeExpired: true };
  return (await Array.fromAsync(store.readStream(stream, read))).length > 0;
};

/** The stream's last revision where it has gone on past `last`. */
const expire = async (
  store: EventStore,
  stream: string,
  last: Revision,
): Promise<'done' | Revision | null> => {
  try {
    await store.expire(stream, last);
    return 'done';
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision)) throw error;
    return error.actual;
  }
};
