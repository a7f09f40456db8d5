/** Visitors of customers' websites and the partners behind them, who act without a pause and record the answers. */
import { randomUUID } from 'node:crypto';
import type { Called } from '../support/call.ts';
import type { Service } from '../support/service.ts';

export interface Customer {
  readonly key: string;
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly record: CustomerRecord;
}

export interface CustomerRecord {
  /** Every browser tab that sent a visit, acknowledged or not. */
  readonly tabs: Set<string>;
  /** Tabs with an acknowledged visit. */
  readonly captured: Set<string>;
  /** Capture requests that a 204 acknowledged. */
  captures: number;
  /** Capture requests that may or may not be counted. */
  uncertainCaptures: number;
  /** Sessions in the order in which a follower of the feed received them by its cursor. */
  readonly followed: string[];
  cursor: string;
  /** Acknowledged reveals by Idempotency-Key. */
  readonly reveals: Map<string, Revealed>;
  /** The number of reveals that have been checked already. */
  checkedReveals: number;
  /** Answers that must not occur here. */
  readonly unexpected: string[];
  /** Answers that succeeded, not counting temporary refusals. */
  answers: number;
}

export interface Revealed {
  readonly session_id: string;
  readonly reveal_id: string;
}

export const emptyRecord = (): CustomerRecord => ({
  tabs: new Set(),
  captured: new Set(),
  captures: 0,
  uncertainCaptures: 0,
  followed: [],
  cursor: '',
  reveals: new Map(),
  checkedReveals: 0,
  unexpected: [],
  answers: 0,
});

/** An origin of each customer's tracker. */
export const PAGE = 'https://www.example.com';
const VISITORS = 3;
const REVEALERS = 5;
/** The pixel repeats an unanswered visit once; a partner repeats until there is an answer. */
const CAPTURE_TRIES = 2;
const REVEAL_TRIES = 40;
const AGAIN_MS = 20;

type Callable = Pick<Service, 'call'>;

/** Reads one more page of the feed from the follower's cursor. */
export const follow = async (service: Callable, { key, tracker_id, record }: Customer): Promise<Called> => {
  const from = record.cursor === '' ? '' : `&cursor=${record.cursor}`;
  const page = await service.call('GET', `/v1/sessions?tracker_id=${tracker_id}&limit=100${from}`, { key });
  if (page.status !== 200) return page;
  record.cursor = page.body.next_cursor;
  for (const { session_id } of page.body.sessions) record.followed.push(session_id);
  return page;
};

export const reveal = (
  service: Callable,
  key: string,
  session: string,
  idempotencyKey: string,
): Promise<Called> =>
  service.call('POST', `/v1/sessions/${session}/reveal`, {
    key,
    headers: { 'idempotency-key': idempotencyKey },
  });

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));

/**
 * Makes visitors come to each customer's site from the addresses of `nextIp`, and makes each customer follow the feed
 * and reveal half of the sessions; they tolerate an unavailable service.
 * @returns stops them after their current action
 */
export const startVisitors = (
  service: Callable,
  customers: readonly Customer[],
  nextIp: () => string,
): (() => Promise<void>) => {
  let stopping = false;

  /** null: no answer. Records answers that are neither a success nor a temporary refusal. */
  const ask = async (
    { record }: Customer,
    wished: readonly number[],
    send: () => Promise<Called>,
  ): Promise<Called | null> => {
    const answer = await send().catch(() => null);
    if (answer === null) return null;
    if (wished.includes(answer.status)) record.answers += 1;
    else if (answer.status !== 503) record.unexpected.push(`${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  };

  const view = async (customer: Customer, token: string, ip: string): Promise<void> => {
    const { tracker_id, record } = customer;
    const body = { tracker_id, token, visit_id: randomUUID(), custom: { tab: token } };
    const headers = { 'content-type': 'text/plain', origin: PAGE, 'x-forwarded-for': ip };
    record.tabs.add(token);
    for (let tries = CAPTURE_TRIES; tries > 0; tries -= 1) {
      const answer = await ask(customer, [204], () =>
        service.call('POST', '/tracking/collect', { headers, body }),
      );
      if (answer?.status === 204) {
        record.captures += 1;
        record.captured.add(token);
        return;
      }
      record.uncertainCaptures += 1;
      await pause();
    }
  };

  const visitor = async (customer: Customer): Promise<void> => {
    for (let n = 0; !stopping; n += 1) {
      const [token, ip] = [randomUUID(), nextIp()];
      for (let views = 1 + (n % 3 === 0 ? 1 : 0); views > 0; views -= 1) await view(customer, token, ip);
    }
  };

  const follower = async (customer: Customer, found: (session: string) => void): Promise<void> => {
    while (!stopping) {
      const page = await ask(customer, [200], () => follow(service, customer));
      if (page?.status === 200) for (const { session_id } of page.body.sessions) found(session_id);
      if (!page?.body?.has_more) await pause();
    }
  };

  const revealOne = async (customer: Customer, session_id: string): Promise<void> => {
    const idempotencyKey = randomUUID();
    for (let tries = REVEAL_TRIES; tries > 0; tries -= 1) {
      const answer = await ask(customer, [200, 202], () =>
        reveal(service, customer.key, session_id, idempotencyKey),
      );
      if (answer?.status === 200 || answer?.status === 202) {
        const { reveal_id } = answer.body;
        customer.record.reveals.set(idempotencyKey, { session_id, reveal_id });
        // Completes it if it can complete already.
        await ask(customer, [200, 202], () =>
          service.call('GET', answer.body.status_url, { key: customer.key }),
        );
        return;
      }
      // Some callers stop polling: the outcome of their reveal must not depend on it.
      if (stopping && tries % 2 === 0) return;
      await pause();
    }
  };

  const revealer = async (customer: Customer, sessions: string[]): Promise<void> => {
    while (!stopping) {
      const session = sessions.pop();
      if (session === undefined) await pause();
      else await revealOne(customer, session);
    }
  };

  const work = (customer: Customer): Promise<unknown> => {
    const toReveal: string[] = [];
    let n = 0;
    const found = (session: string): void => {
      n += 1;
      if (n % 2 === 0) toReveal.push(session);
    };
    return Promise.all([
      follower(customer, found),
      ...Array.from({ length: VISITORS }, () => visitor(customer)),
      ...Array.from({ length: REVEALERS }, () => revealer(customer, toReveal)),
    ]);
  };

  const running = Promise.all(customers.map(work));
  return async () => {
    stopping = true;
    await running;
  };
};
