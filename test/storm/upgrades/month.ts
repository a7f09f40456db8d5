/** A month of the release before this one, which a storm of upgrades begins with: each day passes in seconds. */
import { partialDeepStrictEqual } from 'node:assert';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DAY, utcDay } from '../../../domain/kernel/time.ts';
import { call } from '../../support/call.ts';
import { makeTestFolder } from '../../support/temporary-folder.ts';
import { createClient } from '../client.ts';
import { auditLedger } from '../invariants/reveals.ts';
import { checkRunning } from '../invariants/running.ts';
import { settle } from '../invariants/settle.ts';
import { createAddresses } from '../load/load.ts';
import { startLoad } from '../load/start.ts';
import type { StormOptions } from '../options.ts';
import type { Partner } from '../partners.ts';
import { createRandom } from '../random.ts';
import { createPartner } from '../setup-partners.ts';
import type { Stack } from '../stack.ts';
import type { Prelude } from '../storm.ts';
import type { Violations } from '../violations.ts';

/** The first days expire before the last. */
const DAYS = 34;
const LOAD_MS = 2_500;
/** Until all processes have read their clocks. */
const READ_MS = 300;
/** No session, reveal or delivery expires while the storm lasts. */
const HALF_A_DAY = DAY / 2;
const DELIVERED_MS = 60_000;
/** The newest of each kind of thing that has an address of its own. */
const SHOWN = 100;

/** What an answer says of itself, and of the minute. */
const NOT_OF_THE_MONTH = ['request_id', 'completed_observed_last_minute'];
const DETAIL = 1_000;

type Answers = Readonly<Record<string, unknown>>;

/** Its check compares what is shown of the month with what was shown at its end. */
export const createMonth = ({ seed, say }: StormOptions, violations: Violations): Prelude => {
  const folder = makeTestFolder();
  const begunAt = Date.now();
  const clockFile = join(folder, 'clock');
  const goTo = (daysAgo: number): void => {
    const movedMs = daysAgo === 0 ? 0 : begunAt - Date.now() - daysAgo * DAY - HALF_A_DAY;
    // A file that is half written would say that it is now.
    writeFileSync(`${clockFile}.new`, String(movedMs));
    renameSync(`${clockFile}.new`, clockFile);
  };
  goTo(DAYS);
  /** Twice where a day passes during an attempt: its claim has run out then. */
  const delivered = new Set<string>();
  const deliveredAgain: string[] = [];
  let partner: Partner | null = null;
  let expected: Answers = {};
  let hasPassed = false;

  const play = async (stack: Stack): Promise<void> => {
    const [api] = stack.api;
    if (api === undefined) throw new Error('no api process');
    partner = await createPartner(stack, api, `month-${process.pid}-${Date.now()}`);
    const random = createRandom(seed);
    const client = createClient(stack.api, random, violations);
    const load = { client, partners: [partner], random, violations, nextIp: createAddresses(random) };
    for (let daysAgo = DAYS; daysAgo > 0; daysAgo -= 1) {
      goTo(daysAgo);
      await pause(READ_MS);
      const stopLoad = startLoad(load);
      await pause(LOAD_MS);
      await stopLoad();
    }
    goTo(0);
    await checkRunning(stack.processes, violations);
    expected = await settledAnswers(stack, partner, begunAt, violations);
    hasPassed = true;
    say(
      `a month passed: ${partner.feed.length} sessions, ${partner.reveals.size} reveals, ${delivered.size} events`,
    );
  };

  const check = async (stack: Stack): Promise<Record<string, number>> => {
    const [api] = stack.api;
    if (api === undefined || partner === null) throw new Error('there was no month');
    const answers = await settledAnswers(stack, partner, begunAt, violations);
    for (const [path, answer] of Object.entries(expected)) {
      try {
        partialDeepStrictEqual(answers[path], answer);
      } catch (error) {
        violations.add('a month is shown as before', `${path}: ${error}`.slice(0, DETAIL));
      }
    }
    for (const id of deliveredAgain) violations.add('a month is not delivered again', id);
    await auditLedger(violations, partner, api);
    return { 'events of the month': delivered.size, 'answers about the month': Object.keys(expected).length };
  };

  return {
    clockFile,
    receive: ({ path, headers }) => {
      if (path !== `/${partner?.partnerId}`) return false;
      const id = String(headers['webhook-id']);
      if (hasPassed) deliveredAgain.push(id);
      delivered.add(id);
      return true;
    },
    play,
    check,
  };
};

/** A list as an object, because a release may add properties and no entries. */
const comparable = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value) => {
      if (NOT_OF_THE_MONTH.includes(name)) return undefined;
      return Array.isArray(value) ? { count: value.length, ...value } : value;
    }),
  );

interface Page {
  readonly sessions?: readonly unknown[];
  readonly deliveries?: readonly { readonly state: string }[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** What is shown of the month, once everything was delivered. `begunAt`: of the storm. */
const settledAnswers = async (
  { api }: Stack,
  partner: Partner,
  begunAt: number,
  violations: Violations,
): Promise<Answers> => {
  const { key, trackerId, webhook } = partner;
  const ask = async (path: string, allowed = [200]): Promise<unknown> => {
    const { status, body } = await call(api[0]?.url ?? '', 'GET', path, { key });
    if (!allowed.includes(status)) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  const pagesOf = async (path: string): Promise<Page[]> => {
    const pages: Page[] = [];
    for (let cursor = ''; ; ) {
      const page = (await ask(`${path}${cursor && `cursor=${encodeURIComponent(cursor)}`}`)) as Page;
      pages.push(page);
      if (!page.has_more) return pages;
      cursor = page.next_cursor;
    }
  };
  const deliveryPages = () => pagesOf(`/v1/webhooks/${webhook.id}/deliveries?`);
  const undelivered = await settle(async () => {
    const shown = (await deliveryPages()).flatMap(({ deliveries = [] }) => deliveries);
    return shown.filter(({ state }) => state === 'pending' || state === 'failed');
  }, DELIVERED_MS);
  for (const one of undelivered) violations.add('a month is delivered', JSON.stringify(one));
  const days = Array.from({ length: DAYS }, (_, passed) => {
    const at = begunAt - (passed + 1) * DAY - HALF_A_DAY;
    return `from=${utcDay(at)}&to=${utcDay(at + DAY)}`;
  });
  const revealed = [...partner.reveals.values()].flatMap(({ revealId }) => revealId ?? []);
  const [firstSession] = partner.feed;
  const expired = [`/v1/sessions/${firstSession}`, `/v1/reveals/${revealed[0]}`];
  const paths = [
    ...days.flatMap((day) => [`/v1/usage?${day}`, `/v1/trackers/${trackerId}/usage?${day}`]),
    ...partner.feed.slice(-SHOWN).map((id) => `/v1/sessions/${id}`),
    ...revealed.slice(-SHOWN).map((id) => `/v1/reveals/${id}`),
  ];
  const answers: Record<string, unknown> = {
    feed: (await pagesOf(`/v1/sessions?tracker_id=${trackerId}&limit=${SHOWN}&`)).map(
      ({ sessions }) => sessions,
    ),
    deliveries: (await deliveryPages()).map(({ deliveries }) => deliveries),
  };
  for (const path of paths) answers[path] = await ask(path);
  for (const path of expired) answers[path] = await ask(path, [410]);
  return Object.fromEntries(Object.entries(answers).map(([path, answer]) => [path, comparable(answer)]));
};
