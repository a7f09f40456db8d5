import { createCaller } from './call.ts';
import { createFeed, type Feed } from './feed.ts';
import type {
  Health,
  LedgerEntry,
  Lookup,
  Pending,
  Reveal,
  SessionFeed,
  SessionPreview,
  Usage,
} from './generated.ts';
import { createLedger, type LedgerOptions, type LedgerProof, type VerifyLedgerOptions } from './ledger.ts';
import { type LookupMany, type LookupManyOptions, lookUpMany } from './lookup-many.ts';
import { type CallOptions, type ClientOptions, checked } from './options.ts';
import { type LookupOptions, lookUp, type Revealed, type RevealOptions, reveal } from './poll.ts';
import { realTime } from './time.ts';
import {
  createDomains,
  createTrackers,
  type DateRange,
  type Domains,
  rangeOf,
  type Trackers,
} from './trackers.ts';
import { createWebhooks, type Webhooks } from './webhooks.ts';

export interface SessionsOptions extends CallOptions {
  /** Only the sessions of this tracker. */
  readonly trackerId?: string | undefined;
  /** The cursor of an earlier feed of the same tracker, or of all. Default: the oldest session. */
  readonly cursor?: string | undefined;
  /** Sessions per request, 1 to 100. Default: 50. */
  readonly limit?: number | undefined;
  /** Keeps polling for newer sessions after the newest one, at this interval in seconds. */
  readonly followEverySeconds?: number | undefined;
}

/**
 * Calls the service with one API key. Every method throws a DoorplateError when it fails, and a TypeError for invalid
 * arguments.
 */
export interface Client {
  /**
   * Returns the company behind an address: submits it when no result is saved, and polls until the lookup is done.
   */
  lookup(ip: string, options?: LookupOptions): Promise<Lookup>;
  /**
   * Looks up many addresses, each once, at the pace that the service allows: results in the order in which they come,
   * with `progress`. Iterate it once. It waits as long as the service asks; end it with `signal`.
   */
  lookupMany(addresses: Iterable<string> | AsyncIterable<string>, options?: LookupManyOptions): LookupMany;
  /** Submits an address without waiting: `status` tells the result. */
  requestLookup(ip: string, options?: CallOptions): Promise<Lookup | Pending>;
  /**
   * Returns the saved result or the lookup in progress; starts nothing, and fails with `not_requested` when there is
   * none.
   */
  readLookup(ip: string, options?: CallOptions): Promise<Lookup | Pending>;
  /** Sessions, oldest first: up to the newest, or continuously. */
  sessions(options?: SessionsOptions): Feed<SessionPreview>;
  /** Returns one page of sessions, which may be empty. */
  readSessions(options?: Omit<SessionsOptions, 'followEverySeconds'>): Promise<SessionFeed>;
  /** Returns one session without revealing it. */
  session(sessionId: string, options?: CallOptions): Promise<SessionPreview>;
  /**
   * Reveals the company behind a session, which costs a unit when there is any data. Retries use the same key, so
   * there is one reveal, and one unit at most.
   */
  reveal(sessionId: string, options?: RevealOptions): Promise<Revealed>;
  /** Requests a reveal without waiting for it. */
  requestReveal(sessionId: string, idempotencyKey: string, options?: CallOptions): Promise<Reveal>;
  /** Returns the receipt of a reveal; never charges. */
  readReveal(revealId: string, options?: CallOptions): Promise<Reveal>;
  /** Of this key. */
  usage(range?: DateRange, options?: CallOptions): Promise<Usage>;
  /** The entries of a month that a bill is made of, in their order. */
  ledger(options?: LedgerOptions): Feed<LedgerEntry>;
  /**
   * Reads the whole ledger and verifies it: numbers, digests, totals, and that it still fits every anchor. It does not throw
   * for a difference: the result names the first.
   */
  verifyLedger(options?: VerifyLedgerOptions): Promise<LedgerProof>;
  /** Whether the service runs. */
  health(options?: CallOptions): Promise<Health>;
  readonly trackers: Trackers;
  readonly domains: Domains;
  readonly webhooks: Webhooks;
}

/** @throws TypeError for invalid options */
export const createClient = (options: ClientOptions): Client => {
  const caller = createCaller(checked(options));
  const { body, wait } = caller;

  const readSessions: Client['readSessions'] = ({ trackerId, cursor, limit, ...call } = {}) => {
    const query = {
      ...(trackerId !== undefined && { tracker_id: trackerId }),
      ...(cursor !== undefined && { cursor }),
      ...(limit !== undefined && { limit }),
    };
    return body('listSessions', { query }, call);
  };

  const sessions = ({ followEverySeconds, ...page }: SessionsOptions = {}) => {
    if (followEverySeconds !== undefined && !(followEverySeconds >= 1)) {
      throw new TypeError('followEverySeconds must be 1 or more');
    }
    return createFeed({
      start: page.cursor,
      pause:
        followEverySeconds === undefined
          ? null
          : () => wait('listSessions', followEverySeconds * 1_000, { deadlineAt: null, signal: page.signal }),
      read: async (cursor) => {
        const { sessions, next_cursor, has_more } = await readSessions({ ...page, cursor });
        return { items: sessions, cursor: next_cursor, hasMore: has_more };
      },
    });
  };

  return {
    lookup: (ip, own = {}) => lookUp(caller, ip, own),
    lookupMany: (addresses, own = {}) => lookUpMany(caller, options.time ?? realTime, addresses, own),
    requestLookup: (ip, own) => body('requestLookup', { body: { ip } }, own),
    readLookup: (ip, own) => body('readLookup', { query: { ip } }, own),
    sessions,
    readSessions,
    session: (sessionId, own) => body('previewSession', { path: { session_id: sessionId } }, own),
    reveal: (sessionId, own = {}) => reveal(caller, sessionId, own),
    requestReveal: (sessionId, idempotencyKey, own) =>
      body(
        'revealSession',
        { path: { session_id: sessionId }, header: { 'Idempotency-Key': idempotencyKey } },
        own,
      ),
    readReveal: (revealId, own) => body('getReveal', { path: { reveal_id: revealId } }, own),
    usage: (range = {}, own = {}) => body('readUsage', { query: rangeOf(range) }, own),
    ...createLedger(caller),
    health: (own) => body('readHealth', {}, own),
    trackers: createTrackers(caller),
    domains: createDomains(caller),
    webhooks: createWebhooks(caller),
  };
};
