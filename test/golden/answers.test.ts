/**
 * Every answer to generated requests, at fixed seeds, is what it was when `answers.txt` was written. Of each a line is
 * kept, with a digest of headers and body; `GOLDEN_ANSWERS=file` writes the answers themselves, to be compared.
 */
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import fc from 'fast-check';
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { settledRequests } from '../fuzz/generators.ts';
import { createNoting, nothingKnown } from '../fuzz/known.ts';
import { ORIGIN } from '../fuzz/tracking-requests.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';
import { collect, makeTracker } from '../support/tracking.ts';
import { masked } from './mask.ts';

const REQUESTS = 750;
/** After so many, what was asked for is enriched, and time goes by. */
const ROUND = 50;

const clock = manualClock();
const known = nothingKnown();
const noting = createNoting(known);
let api: TestApi;
let keys: readonly (string | null)[];
/** What is looked up waits for the end of its round. */
let gate = Promise.withResolvers<void>();

beforeAll(async () => {
  // The generators make dates around today.
  vi.useFakeTimers({ toFake: ['Date'], now: NOON });
  const script = scriptedProvider();
  const says = [aCompany('A'), record({ match_type: 'isp' }), record({}), null] as const;
  for (let n = 0; n <= 255; n += 1) script.says(`9.1.1.${n}`, says[n % says.length] ?? null);
  const provider = {
    ...script,
    lookup: async (ip: string, signal: AbortSignal) => {
      await gate.promise;
      return script.lookup(ip, signal);
    },
  };
  api = await startApi({ clock, providers: [provider], env: { CAPTURES_PER_SECOND_PER_VISITOR: '3' } });
  const made: Key[] = [
    await api.key(),
    await api.key({ company_signals: true }),
    await api.key({ requests_per_second: 2 }),
    await api.key({ new_enrichments_per_day: 0 }),
    await api.key({ pending_enrichments: 2 }),
  ];
  const [plain, clues, ...others] = made.map(({ api_key }) => `Bearer ${api_key}`);
  keys = [...Array(12).fill(plain), ...Array(6).fill(clues), ...others, null, 'Bearer x', 'Basic eDp5', ''];
  if (made[0] && made[1]) await setScene(made[0], made[1]);
}, 60_000);
afterAll(async () => {
  await api.close();
  vi.useRealTimers();
});

/** Trackers in every state, with sessions. */
const setScene = async (key: Key, other: Key): Promise<void> => {
  const trackers: string[] = [];
  for (const by of [key, key, key, other]) trackers.push(await makeTracker(api, by, { origins: [ORIGIN] }));
  const [active = '', disabled = '', deleted = '', others = ''] = trackers;
  for (let n = 0; n < 40; n += 1) {
    await collect(api, [active, active, disabled, deleted][n % 4] ?? '', { ip: `9.1.1.${n}` });
    clock.advance(1_000);
  }
  await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${disabled}` });
  await api.inject(key, { method: 'POST', url: `/v1/trackers/${deleted}/delete` });
  noting((await api.inject(key, { method: 'GET', url: '/v1/sessions?limit=100' })).body);
  known.trackers.push(...Array<string>(7).fill(active), disabled, deleted, others);
};

/** Lets all work on addresses end, then holds back what comes. */
const enrich = async (): Promise<void> => {
  gate.resolve();
  await eventually('nothing waits to be enriched', async () => {
    await api.caughtUp();
    const { rows } = await api.sql.query(
      `select (select count(*) from read.enrichment_work)
            + (select count(*) from read.reservation where state = 'pending') as waiting`,
    );
    return Number(rows[0]?.waiting) === 0;
  });
  gate = Promise.withResolvers();
};

const authorization = fc.noBias(fc.nat(9_999)).map((n) => keys[n % keys.length] ?? null);
const request = fc.oneof(...settledRequests(known, authorization));

const answerTo = async (seed: number): Promise<string> => {
  const [asked] = fc.sample(request, { numRuns: 1, seed });
  if (!asked) throw new Error('no request');
  const { method, target, headers, body } = asked;
  const answer = await api.app.inject({
    method: method as NonNullable<InjectOptions['method']>,
    url: target,
    headers: { ...headers, ...(asked.authorization === null ? {} : { authorization: asked.authorization }) },
    ...(method === 'GET' || method === 'HEAD' ? {} : { payload: body }),
  });
  if (answer.statusCode < 300) noting(answer.payload);
  // test/http/quota-headers.test.ts has the last two.
  const {
    date: _,
    'content-length': __,
    etag: ___,
    ratelimit: ____,
    'ratelimit-policy': _____,
    ...rest
  } = answer.headers;
  // The order of headers means nothing.
  const sorted = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  const isPage = rest['content-type']?.toString().startsWith('text/html');
  const code = /"code":"(\w+)"/.exec(answer.payload)?.[1] ?? '-';
  const whole = `${answer.statusCode} ${masked(JSON.stringify(sorted))} ${isPage ? '<page>' : masked(answer.payload)}`;
  if (process.env.GOLDEN_ANSWERS) {
    appendFileSync(process.env.GOLDEN_ANSWERS, `${seed} ${method} ${masked(target)}\n  ${whole}\n`);
  }
  const digest = createHash('sha256').update(whole).digest('hex').slice(0, 12);
  return `${seed} ${method} ${answer.statusCode} ${code} ${digest}`;
};

it(`gives unchanged answers to ${REQUESTS} requests`, async () => {
  const lines: string[] = [];
  for (let seed = 1; seed <= REQUESTS; seed += 1) {
    lines.push(await answerTo(seed));
    clock.advance(100);
    if (seed % ROUND > 0) continue;
    await enrich();
    if (seed % (ROUND * 3) === 0) clock.advance(2 * DAY);
    vi.setSystemTime(clock.now());
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('answers.txt');
}, 240_000);
