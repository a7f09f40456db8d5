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
/** Of each kind of thing that has an address of its own. */
const SHOWN = 100;

/** What an answer says of itself, and of the minute. */
const NOT_OF_THE_MONTH = ['request_id', 'completed_observed_last_minute'];
const DETAIL = 1_000;

type Answers = Readonly<Record<string, unknown>>;

/** Its check compares what is shown of the month with what was shown at its end. */
export const createMonth = ({ seed, say }: StormOptions, violations: Violations): Prelude => {
  const folder = makeTestFolder();
  const clockFile = join(folder, 'clock');
  const goTo = (daysAgo: number): void => {
    const movedMs = daysAgo === 0 ? 0 : -(daysAgo * DAY + HALF_A_DAY);
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
    expected = await settledAnswers(stack, partner);
    hasPassed = true;
    say(
      `a month passed: ${partner.feed.length} sessions, ${partner.reveals.size} reveals, ${delivered.size} events`,
    );
  };

  const check = async (stack: Stack): Promise<Record<string, number>> => {
    const [api] = stack.api;
    if (api === undefined || partner === null) throw new Error('there was no month');
    const answers = await settledAnswers(stack, partner);
    for (const [path, answer] of Object.entries(expected)) {
      try {
        // A release may add properties.
        partialDeepStrictEqual(answers[path], answer);
      } catch (error) {
        violations.add('a month is shown as before', `${path}: ${error}`.slice(0, DETAIL));
      }
    }
    for (const id of deliveredAgain) violations.add('a month is not delivered again', id);
    await auditLedger(violations, partner, api);
    return { 'events of the month': delivered.size, 'pages of the month': Object.keys(expected).length };
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

/** What is shown of the month, once everything was delivered. */
const settledAnswers = async ({ api }: Stack, partner: Partner): Promise<Answers> => {
  const { key, trackerId, webhook } = partner;
  const ask = async (path: string): Promise<unknown> => {
    const { status, body } = await call(api[0]?.url ?? '', 'GET', path, { key });
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
    return JSON.parse(
      JSON.stringify(body, (name, value) => (NOT_OF_THE_MONTH.includes(name) ? undefined : value)),
    );
  };
  const deliveries = `/v1/webhooks/${webhook.id}/deliveries`;
  await settle(async () => {
    const shown = (await ask(deliveries)) as { deliveries: { state: string }[] };
    return shown.deliveries.filter(({ state }) => state !== 'delivered');
  }, DELIVERED_MS);
  const days = Array.from({ length: DAYS }, (_, passed) => {
    const at = Date.now() - (passed + 1) * DAY - HALF_A_DAY;
    return `from=${utcDay(at)}&to=${utcDay(at + DAY)}`;
  });
  const revealed = [...partner.reveals.values()].flatMap(({ revealId }) => revealId ?? []);
  const paths = [
    ...days.flatMap((day) => [`/v1/usage?${day}`, `/v1/trackers/${trackerId}/usage?${day}`]),
    deliveries,
    ...partner.feed.slice(-SHOWN).map((id) => `/v1/sessions/${id}`),
    ...revealed.slice(-SHOWN).map((id) => `/v1/reveals/${id}`),
  ];
  const answers: Record<string, unknown> = {};
  for (const path of paths) answers[path] = await ask(path);
  for (let cursor = '', more = true; more; ) {
    const path = `/v1/sessions?tracker_id=${trackerId}&limit=${SHOWN}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const page = (await ask(path)) as { sessions: unknown[]; next_cursor: string; has_more: boolean };
    answers[path] = { count: page.sessions.length, sessions: page.sessions };
    cursor = page.next_cursor;
    more = page.has_more;
  }
  return answers;
};
