import { describe, expect, it } from 'vitest';
import { answer, BROKEN, type Fake, failureOf, fakeService } from './fakes.ts';

const sessions = (ids: string, next_cursor: string, has_more: boolean) =>
  answer(200, { sessions: [...ids].map((session_id) => ({ session_id })), next_cursor, has_more });
const deliveries = (ids: string, next_cursor: string) =>
  answer(200, { deliveries: [...ids].map((id) => ({ id })), next_cursor, has_more: next_cursor !== '' });

const idsOf = async (feed: AsyncIterable<{ session_id: string }>, atMost = Infinity): Promise<string> => {
  let ids = '';
  for await (const { session_id } of feed) {
    ids += session_id;
    if (ids.length === atMost) break;
  }
  return ids;
};
const cursors = ({ asked }: Fake) =>
  asked.map(({ url }) => new URLSearchParams(url.split('?')[1]).get('cursor'));

describe('the feed of sessions', () => {
  it('is read page by page to its end, and its cursor resumes it', async () => {
    const fake = fakeService([
      sessions('ab', '1', true),
      sessions('cd', '2', true),
      sessions('', '3', false),
    ]);
    const feed = fake.client.sessions();
    await expect(fake.until(idsOf(feed))).resolves.toBe('abcd');
    expect(cursors(fake)).toEqual([null, '1', '2']);
    expect(feed.cursor).toBe('3');
  });

  it('continues from a cursor, also when it is read again', async () => {
    const fake = fakeService([sessions('a', '1', false), sessions('b', '2', false)]);
    const feed = fake.client.sessions({ cursor: '0' });
    await expect(fake.until(idsOf(feed))).resolves.toBe('a');
    await expect(fake.until(idsOf(feed))).resolves.toBe('b');
    expect(cursors(fake)).toEqual(['0', '1']);
  });

  it('that is left within a page has its cursor before the page, so nothing is missed', async () => {
    const fake = fakeService([sessions('ab', '1', true), sessions('cd', '2', false)]);
    const feed = fake.client.sessions();
    await expect(fake.until(idsOf(feed, 3))).resolves.toBe('abc');
    expect(feed.cursor).toBe('1');
  });

  it('that fails has its cursor where it failed', async () => {
    const fake = fakeService([sessions('ab', '1', true), BROKEN, sessions('c', '2', false)], { retries: 0 });
    const feed = fake.client.sessions();
    expect(await fake.until(failureOf(idsOf(feed)))).toMatchObject({ kind: 'network' });
    expect(feed.cursor).toBe('1');
    await expect(fake.until(idsOf(feed))).resolves.toBe('c');
  });

  it('gives its pages with their cursors', async () => {
    const fake = fakeService([sessions('ab', '1', true), sessions('', '2', true), sessions('c', '3', false)]);
    const pages: unknown[] = [];
    const read = async () => {
      for await (const page of fake.client.sessions().pages()) pages.push(page);
    };
    await fake.until(read());
    expect(pages).toEqual([
      { items: [{ session_id: 'a' }, { session_id: 'b' }], cursor: '1' },
      { items: [{ session_id: 'c' }], cursor: '3' },
    ]);
  });

  it('is followed: polled repeatedly from its end', async () => {
    const fake = fakeService([
      sessions('a', '1', false),
      sessions('', '1', false),
      sessions('b', '2', false),
    ]);
    await expect(fake.until(idsOf(fake.client.sessions({ followEverySeconds: 5 }), 2))).resolves.toBe('ab');
    expect(cursors(fake)).toEqual([null, '1', '1']);
    expect(fake.asked[2]?.at).toBeGreaterThanOrEqual(10_000);
  });

  it('is followed until a signal', async () => {
    const fake = fakeService([sessions('', '1', false)]);
    const stop = new AbortController();
    const failed = failureOf(idsOf(fake.client.sessions({ followEverySeconds: 5, signal: stop.signal })));
    await new Promise(setImmediate);
    stop.abort('enough');
    expect(await fake.until(failed)).toMatchObject({ kind: 'aborted', cause: 'enough' });
  });
});

describe('the delivery history', () => {
  it('is read to its end, which has no cursor', async () => {
    const fake = fakeService([deliveries('ab', '1'), deliveries('c', '')]);
    const feed = fake.client.webhooks.deliveries('w1');
    const read = async () => {
      const ids: string[] = [];
      for await (const { id } of feed) ids.push(id);
      return ids;
    };
    await expect(fake.until(read())).resolves.toEqual(['a', 'b', 'c']);
    expect(cursors(fake)).toEqual([null, '1']);
    expect(feed.cursor).toBeUndefined();
  });
});
