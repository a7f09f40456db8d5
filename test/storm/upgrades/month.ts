/** A month of the release before this one, which a storm of upgrades begins with: each day passes in seconds. */
import { partialDeepStrictEqual } from 'node:assert';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DAY, utcDay } from '../../../domain/kernel/time.ts';
import { call } from '../../support/call.ts';
import { makeTestFolder } from '../../support/temporary-folder.ts';
import { webhooksOf } from '../../support/webhook-sink.ts';
import { createClient } from '../client.ts';
import { checkDeliveries } from '../invariants/deliveries.ts';
import { auditLedger } from '../invariants/reveals.ts';
import { checkRunning } from '../invariants/running.ts';
import { readFeed } from '../invariants/sessions.ts';
import { settle, untilAnswered } from '../invariants/settle.ts';
import { readFeedPage } from '../load/feed.ts';
import { createAddresses, type Load } from '../load/load.ts';
import { startLoad } from '../load/start.ts';
import type { StormOptions } from '../options.ts';
import type { Partner } from '../partners.ts';
import type { StormProcess } from '../processes.ts';
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
  const begunAt = Date.now();
  const clockFile = join(makeTestFolder(), 'clock');
  const goTo = (daysAgo: number): void => {
    const movedMs = daysAgo === 0 ? 0 : begunAt - Date.now() - daysAgo * DAY - HALF_A_DAY;
    // A file that is half written would say that it is now.
    writeFileSync(`${clockFile}.new`, String(movedMs));
    renameSync(`${clockFile}.new`, clockFile);
  };
  goTo(DAYS);
  const partners: Partner[] = [];
  /** null until the month has passed. Before, an event comes twice where a day passes during its attempt. */
  let expected: Answers | null = null;
  const deliveredAgain: string[] = [];
  const loadOf = ({ api }: Stack): Load => {
    const random = createRandom(seed);
    const client = createClient(api, random, violations);
    return { client, partners, random, violations, nextIp: createAddresses(random) };
  };

  const play = async (stack: Stack): Promise<void> => {
    const partner = await createPartner(stack, apiOf(stack), `month-${process.pid}-${Date.now()}`);
    partners.push(partner);
    const load = loadOf(stack);
    for (let daysAgo = DAYS; daysAgo > 0; daysAgo -= 1) {
      goTo(daysAgo);
      await pause(READ_MS);
      const stopLoad = startLoad(load);
      await pause(LOAD_MS);
      await stopLoad();
    }
    goTo(0);
    await checkRunning(stack.processes, violations);
    await untilAnswered('the end of the feed', async () => (await readFeedPage(load, partner)) || null);
    await checkDeliveries(load, partner);
    expected = await settledAnswers(stack, load, partner, begunAt);
    const { feed, reveals, receivedEvents } = partner;
    say(`a month passed: ${feed.length} sessions, ${reveals.size} reveals, ${receivedEvents.size} events`);
  };

  const check = async (stack: Stack): Promise<Record<string, number>> => {
    const [partner] = partners;
    if (partner === undefined || expected === null) throw new Error('there was no month');
    const answers = await settledAnswers(stack, loadOf(stack), partner, begunAt);
    for (const [what, answer] of Object.entries(expected)) {
      try {
        partialDeepStrictEqual(answers[what], answer);
      } catch (error) {
        violations.add('a month is shown as before', `${what}: ${error}`.slice(0, DETAIL));
      }
    }
    for (const id of deliveredAgain) violations.add('a month is not delivered again', id);
    await auditLedger(violations, partner, apiOf(stack));
    return {
      'events of the month': partner.receivedEvents.size,
      'answers about the month': Object.keys(expected).length,
    };
  };

  return {
    clockFile,
    receive: ({ path, headers, body }) => {
      const partner = partners.find(({ partnerId }) => path === `/${partnerId}`);
      if (partner === undefined) return false;
      const id = String(headers['webhook-id']);
      if (expected !== null) deliveredAgain.push(id);
      partner.events.set(id, body.toString());
      partner.receivedEvents.add(id);
      return true;
    },
    play,
    check,
  };
};

const apiOf = ({ api: [api] }: Stack): StormProcess => {
  if (api === undefined) throw new Error('no api process');
  return api;
};

/** A list as an object, because a release may add properties and no entries. */
const comparable = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value) => {
      if (NOT_OF_THE_MONTH.includes(name)) return undefined;
      return Array.isArray(value) ? { count: value.length, ...value } : value;
    }),
  );

/** What is shown of the month, once everything was delivered. `begunAt`: of the storm. */
const settledAnswers = async (
  stack: Stack,
  load: Load,
  partner: Partner,
  begunAt: number,
): Promise<Answers> => {
  const { key, trackerId, webhook } = partner;
  const { url } = apiOf(stack);
  const { history } = webhooksOf({ call: (...asked) => call(url, ...asked) }, key);
  const undelivered = await settle(
    async () => (await history(webhook)).filter(({ state }) => state === 'pending' || state === 'failed'),
    DELIVERED_MS,
  );
  for (const one of undelivered) load.violations.add('a month is delivered', JSON.stringify(one));
  const answers: Record<string, unknown> = {
    feed: comparable(await readFeed(load, partner)),
    deliveries: comparable(await history(webhook)),
  };
  const ask = async (path: string, expected = 200): Promise<void> => {
    const { status, body } = await call(url, 'GET', path, { key });
    if (status !== expected) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    answers[path] = comparable(body);
  };
  for (let passed = 1; passed <= DAYS; passed += 1) {
    const at = begunAt - passed * DAY - HALF_A_DAY;
    const day = `from=${utcDay(at)}&to=${utcDay(at + DAY)}`;
    await ask(`/v1/usage?${day}`);
    await ask(`/v1/trackers/${trackerId}/usage?${day}`);
  }
  const sessions = partner.feed.map((id) => `/v1/sessions/${id}`);
  const reveals = [...partner.reveals.values()].map(({ revealId }) => `/v1/reveals/${revealId}`);
  for (const paths of [sessions, reveals]) {
    await ask(paths[0] ?? '', 410);
    for (const path of paths.slice(-SHOWN)) await ask(path);
  }
  return answers;
};
