import { randomUUID } from 'node:crypto';
import type { Product } from './product.ts';
import { PAGE } from './request-texts.ts';

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
