import { readFeedPage } from '../load/feed.ts';
import type { Load } from '../load/load.ts';
import type { Partner } from '../partners.ts';
import { settle, untilAnswered } from './settle.ts';

const SHOWN_MS = 30_000;

/** Every acknowledged visit is in the feed once, and a follower of the feed missed and repeated nothing. */
export const checkSessions = async (load: Load, partner: Partner): Promise<void> => {
  const { tabs, feed, partnerId } = partner;
  const missing = await settle(async () => {
    const last = await untilAnswered('a page of the feed', () => readFeedPage(load, partner));
    const left = [...tabs.values()].filter((tab) => tab.acknowledgedAt !== null && !tab.shown);
    return last ? left : [...left, null];
  }, SHOWN_MS);
  for (const tab of missing) {
    const detail = tab === null ? 'the feed has no end' : `tab ${tab.label}`;
    load.violations.add('the feed shows every acknowledged visit', `partner ${partnerId}, ${detail}`);
  }
  const listed = (await readFeed(load, partner)).map(({ session_id }) => session_id);
  const position = listed.findIndex((id, index) => id !== feed[index]);
  if (position >= 0 || listed.length !== feed.length) {
    load.violations.add(
      'following the feed by its cursor gives what reading it from the start gives',
      `partner ${partnerId}: ${feed.length} followed, ${listed.length} listed; at ${position}: ${feed[position]} and ${listed[position]}`,
    );
  }
};

/** The feed of a partner's tracker from its start. */
export const readFeed = async (
  { client }: Load,
  { key, trackerId }: Partner,
): Promise<{ readonly session_id: string }[]> => {
  const listed: { session_id: string }[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path: string = `/v1/sessions?tracker_id=${trackerId}&limit=100${cursor}`;
    const { body } = await untilAnswered(path, async () => {
      const page = await client.ask('feed page', [200], 'GET', path, { key });
      return page?.status === 200 ? page : null;
    });
    listed.push(...body.sessions);
    cursor = body.has_more ? `&cursor=${encodeURIComponent(body.next_cursor)}` : null;
  }
  return listed;
};
