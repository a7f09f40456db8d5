import { createCaller } from './call.ts';
import { createFeed, type Feed } from './feed.ts';
import type { Health, Lookup, Pending, Reveal, SessionPreview, Usage } from './generated.ts';
import { type CallOptions, type ClientOptions, checked } from './options.ts';
import { type LookupOptions, lookUp, type Revealed, type RevealOptions, reveal } from './poll.ts';
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
  /** Sessions of this tracker alone. */
  readonly trackerId?: string | undefined;
  /** Where an earlier feed of the same tracker, or of all, stood; the oldest session unless told. */
  readonly cursor?: string | undefined;
  /** Sessions asked for at a time, 1 to 100; 50 unless told. */
  readonly limit?: number | undefined;
  /** Do not end at the newest session, but look for newer ones so often, in seconds. */
  readonly followEverySeconds?: number | undefined;
}

/** Every call is made with one API key. All of them throw a DoorplateError when they fail, and a TypeError for what no call can be made of. */
export interface Client {
  /** Which company is behind an address: asks for the work where nothing is saved, and polls until it is done. */
  lookup(ip: string, options?: LookupOptions): Promise<Lookup>;
  /** Asks for the work and does not wait for it: `status` tells what came. */
  requestLookup(ip: string, options?: CallOptions): Promise<Lookup | Pending>;
  /** What is saved or under way; starts nothing, and is refused with `not_requested` where nothing was asked for. */
  readLookup(ip: string, options?: CallOptions): Promise<Lookup | Pending>;
  /** Sessions, oldest first: to the newest, or on and on. */
  sessions(options?: SessionsOptions): Feed<SessionPreview>;
  /** One session, without revealing it. */
  session(sessionId: string, options?: CallOptions): Promise<SessionPreview>;
  /**
   * The company behind a session, which costs a unit where there is any data. What fails in between is repeated with the
   * same key, so that there is one reveal, and one unit at most.
   */
  reveal(sessionId: string, options?: RevealOptions): Promise<Revealed>;
  /** Asks for a reveal, and does not wait for it. */
  requestReveal(sessionId: string, idempotencyKey: string, options?: CallOptions): Promise<Reveal>;
  /** The receipt of a reveal; never charges. */
  readReveal(revealId: string, options?: CallOptions): Promise<Reveal>;
  /** Of this key. */
  usage(range?: DateRange, options?: CallOptions): Promise<Usage>;
  /** Whether the service runs. */
  health(options?: CallOptions): Promise<Health>;
  readonly trackers: Trackers;
  readonly domains: Domains;
  readonly webhooks: Webhooks;
}

/** @throws TypeError where the options cannot be meant */
export const createClient = (options: ClientOptions): Client => {
  const caller = createCaller(checked(options));
  const { body, wait } = caller;

  const sessions = ({
    trackerId,
    cursor: start,
    limit,
    followEverySeconds,
    ...call
  }: SessionsOptions = {}) => {
    if (followEverySeconds !== undefined && !(followEverySeconds >= 1)) {
      throw new TypeError('followEverySeconds must be 1 or more');
    }
    return createFeed({
      start,
      pause:
        followEverySeconds === undefined
          ? null
          : () => wait('listSessions', followEverySeconds * 1_000, { deadlineAt: null, signal: call.signal }),
      read: async (cursor) => {
        const query = {
          ...(trackerId !== undefined && { tracker_id: trackerId }),
          ...(cursor !== undefined && { cursor }),
          ...(limit !== undefined && { limit }),
        };
        const page = await body('listSessions', { query }, call);
        return { items: page.sessions, cursor: page.next_cursor, hasMore: page.has_more };
      },
    });
  };

  return {
    lookup: (ip, own = {}) => lookUp(caller, ip, own),
    requestLookup: (ip, own) => body('requestLookup', { body: { ip } }, own),
    readLookup: (ip, own) => body('readLookup', { query: { ip } }, own),
    sessions,
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
    health: (own) => body('readHealth', {}, own),
    trackers: createTrackers(caller),
    domains: createDomains(caller),
    webhooks: createWebhooks(caller),
  };
};
