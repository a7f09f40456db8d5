/** Partners that follow their feed of sessions by its cursor. */
import type { Partner } from '../partners.ts';
import type { Load } from './load.ts';

interface FeedSession {
  readonly session_id: string;
  readonly custom: { readonly tab: string };
}

const REVEALED_SHARE = 0.5;
const PAGE_SIZE = 100;

/** Reads one more page of the feed. @returns whether it was the last one; null: there was no page */
export const readFeedPage = async (load: Load, partner: Partner): Promise<boolean | null> => {
  const { key, trackerId, cursor } = partner;
  const from = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
  const path = `/v1/sessions?tracker_id=${trackerId}&limit=${PAGE_SIZE}${from}`;
  const page = await load.client.ask('feed page', [200], 'GET', path, { key });
  if (page?.status !== 200) return null;
  partner.cursor = page.body.next_cursor;
  for (const session of page.body.sessions) noteSession(load, partner, session);
  return !page.body.has_more;
};

const noteSession = (load: Load, partner: Partner, { session_id, custom }: FeedSession): void => {
  partner.feed.push(session_id);
  const tab = partner.tabs.get(custom.tab);
  const described = `partner ${partner.partnerId}, session ${session_id}, tab ${custom.tab}`;
  if (tab === undefined) load.violations.add('the feed shows visits that were made', described);
  else if (tab.shown) load.violations.add('the feed shows a visit once', described);
  else {
    tab.shown = true;
    if (tab.acknowledgedAt !== null) {
      const kind = 'session in feed';
      const endedAt = performance.now();
      load.client.observe({ kind, sentAt: tab.acknowledgedAt, endedAt, outcome: 'success' });
    }
  }
  if (load.random.chance(REVEALED_SHARE)) partner.toReveal.push(session_id);
};

/** One follower a partner, one request at a time. */
export const createFollowers = (load: Load): (() => Promise<void>) => {
  const busy = new Set<Partner>();
  return async () => {
    const partner = load.partners.find((one) => !busy.has(one));
    if (partner === undefined) return;
    busy.add(partner);
    try {
      await readFeedPage(load, partner);
    } finally {
      busy.delete(partner);
    }
  };
};
