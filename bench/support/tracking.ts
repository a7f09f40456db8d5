import { randomUUID } from 'node:crypto';
import { addressOf } from './addresses.ts';
import { load } from './load.ts';
import type { Product } from './product.ts';
import { PAGE } from './requests.ts';

export const createTracker = async ({ service, keys: [key = ''] }: Product): Promise<string> => {
  const body = { name: 'bench', origins: [PAGE] };
  const made = await service.call('POST', '/v1/trackers', { key, body });
  if (made.status !== 201) throw new Error(`POST /v1/trackers: ${made.status}`);
  return made.body.id;
};

/** One visit of a new tab from an address. @throws when it was not captured */
export const capture = async (
  { service }: Product,
  tracker_id: string,
  ip: string,
  custom: object = {},
): Promise<void> => {
  const { status } = await service.call('POST', '/tracking/collect', {
    headers: { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': ip },
    body: { tracker_id, token: randomUUID(), visit_id: randomUUID(), custom },
  });
  if (status !== 204) throw new Error(`POST /tracking/collect: ${status}`);
};

export interface FeedPage {
  readonly sessions: readonly { readonly session_id: string; readonly custom: { readonly n?: number } }[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** A page of a tracker's feed, from its beginning without a cursor. */
export const readFeed = async (
  { service, keys: [key = ''] }: Product,
  tracker: string,
  cursor?: string,
): Promise<FeedPage> => {
  const from = cursor === undefined ? '' : `&cursor=${cursor}`;
  const { status, body } = await service.call('GET', `/v1/sessions?tracker_id=${tracker}&limit=100${from}`, {
    key,
  });
  if (status !== 200) throw new Error(`GET /v1/sessions: ${status}`);
  return body;
};

/** Addresses that `createRevealable` uses. */
export const VISITORS = 100;
const VISITS = { connections: 20, rate: 500 } as const;

/**
 * Creates a tracker whose visitors, of the numbers from `firstAddress` on (`addressOf`), all have a saved result.
 * @returns a function that begins so many new sessions of theirs and returns the ids: a session is revealed once as a rule, and
 *   one that is revealed often costs the process far fewer reads
 */
export const createRevealable = async (
  product: Product,
  firstAddress: number,
): Promise<(count: number) => Promise<string[]>> => {
  const { service, keys, port } = product;
  for (let n = 0; n < VISITORS; n += 1) {
    const body = { ip: addressOf(firstAddress + n) };
    const { status } = await service.call('POST', '/v1/lookup', { key: keys[0] ?? '', body });
    if (status !== 202) throw new Error(`POST /v1/lookup: ${status}`);
  }
  const tracker = await createTracker(product);
  await product.settled();
  const requests = { of: 'captures', tracker, first: firstAddress, among: VISITORS } as const;
  let cursor: string | undefined;
  return async (count) => {
    await load({ ...VISITS, port, requests, warmUpSeconds: 0, seconds: count / VISITS.rate, expect: 204 });
    const ids: string[] = [];
    for (let hasMore = true; hasMore; ) {
      const page: FeedPage = await readFeed(product, tracker, cursor);
      ids.push(...page.sessions.map(({ session_id }) => session_id));
      cursor = page.next_cursor;
      hasMore = page.has_more;
    }
    return ids;
  };
};
