import { LRUCache } from 'lru-cache';
import { HOUR } from '../../domain/kernel/time.ts';
import { isIncomplete, isStale, type SavedResult } from '../../domain/lookup/result.ts';
import type { ApiRequest, Reply } from '../../http/contract/route.ts';
import { lookupFragment, lookupReply, NOT_NEEDED } from './answer.ts';

/**
 * Fresh results that need no more work: what no command can change until `fresh_until`, with nothing of a
 * partner's own in it (architecture, rule 12). By the caller's spelling, so that a hit parses nothing.
 */
export interface AnswerCache {
  answer(request: ApiRequest, ip: string): Reply | null;
  /** To be called with each saved result that is shown. */
  keep(ip: string, saved: SavedResult, at: number): void;
}

export interface AnswerCacheDeps {
  /** Called for each answer that is given from memory. */
  readonly note: (ip: string) => void;
  /** Returns the names of the providers that are asked now: the same array while they do not change. */
  readonly configured: () => readonly string[];
}

const CACHED = 10_000;
/** A caller may ask for one large result in thousands of spellings, each of which is an entry. */
const CACHED_CHARACTERS = 64 * 1_048_576;
/** The times of a saved result are cut to days one day; an answer kept for longer would still show them in full. */
const CACHED_MS = HOUR;

export const createAnswerCache = ({ note, configured }: AnswerCacheDeps): AnswerCache => {
  let providers = configured();
  const entries = new LRUCache<
    string,
    { address: string; fragment: string; until: number; matchType: SavedResult['match_type'] }
  >({ max: CACHED, maxSize: CACHED_CHARACTERS, sizeCalculation: ({ fragment }) => fragment.length });
  /** Another provider makes results incomplete that were complete. */
  const forgetIfChanged = (): void => {
    const now = configured();
    if (now === providers) return;
    providers = now;
    entries.clear();
  };
  return {
    answer: (request, ip) => {
      forgetIfChanged();
      const entry = entries.get(ip);
      if (!entry || entry.until <= request.receivedAt) return null;
      note(entry.address);
      return lookupReply(request, ip, entry.fragment, entry.matchType, NOT_NEEDED);
    },
    keep: (ip, saved, at) => {
      note(saved.ip);
      if (isIncomplete(saved, configured()) || isStale(saved, at)) return;
      entries.set(ip, {
        address: saved.ip,
        fragment: lookupFragment(saved, NOT_NEEDED, at),
        until: Math.min(Date.parse(saved.fresh_until), at + CACHED_MS),
        matchType: saved.match_type,
      });
    },
  };
};
