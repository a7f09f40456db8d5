/** Trackers and visits over HTTP, as partners and browsers make them. */
import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import type { Key, TestApi } from './api.ts';

export const PAGE = 'https://www.example.com';
/** The service's own, as `startApi` names it. */
const HOST = 'doorplate.test';

export interface Sent {
  /** Any of the body's properties, or a text instead. */
  readonly body?: Readonly<Record<string, unknown>> | string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly query?: string;
  readonly ip?: string;
}

/** A tracker of `PAGE`, or of other origins. */
export const makeTracker = async (
  api: TestApi,
  key: Key,
  over: { name?: string; origins?: readonly string[]; customer_reference?: string } = {},
): Promise<string> => {
  const payload = { name: 'a site', origins: [PAGE], ...over };
  const answer = await api.inject(key, { method: 'POST', url: '/v1/trackers', payload });
  if (answer.statusCode !== 201) throw new Error(answer.body);
  return answer.json().id;
};

/** The request of a browser on a page of the tracker. `undefined` leaves a header or a property out. */
export const collect = (
  api: TestApi,
  trackerId: string,
  sent: Sent = {},
): Promise<LightMyRequestResponse> => {
  const { body = {}, headers = {}, query = '', ip = '8.8.8.8' } = sent;
  const visit = { tracker_id: trackerId, token: randomUUID(), visit_id: randomUUID() };
  const all = {
    host: HOST,
    origin: PAGE,
    'content-type': 'text/plain;charset=UTF-8',
    'x-forwarded-for': ip,
    ...headers,
  };
  return api.app.inject({
    method: 'POST',
    url: `/tracking/collect${query}`,
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    payload: typeof body === 'string' ? body : JSON.stringify({ ...visit, ...body }),
  });
};

export interface FeedPage {
  readonly sessions: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** `query`: such as `limit=2`. */
export const feed = async (api: TestApi, key: Key, query = ''): Promise<FeedPage> => {
  const answer = await api.inject(key, {
    method: 'GET',
    url: `/v1/sessions${query === '' ? '' : `?${query}`}`,
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return answer.json();
};

export const codeOf = (answer: LightMyRequestResponse): string | undefined =>
  answer.body === '' ? undefined : answer.json().error?.code;
