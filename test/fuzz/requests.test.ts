import fc from 'fast-check';
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { nothingStops } from '../support/consumers-caught-up.ts';
import { domainsOf, SERVICE_HOST, startTestDns, type TestDns } from '../support/domains.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';
import { collect, makeTracker } from '../support/tracking.ts';
import { type Answered, conformity } from './conformity.ts';
import { requestWith } from './generators.ts';
import { createNoting, nothingKnown } from './known.ts';
import { exchange } from './raw-exchange.ts';
import { ORIGIN } from './tracking-requests.ts';

/** More with FUZZ_REQUESTS. */
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_400);
const AT_ONCE = 30;
const OVER_A_SOCKET = 200;
const LIMIT_MS = 240_000;

let offset = 0;
const clock = { now: () => Date.now() + offset };
let api: TestApi;
let dns: TestDns;
let keys: readonly (string | null)[];
let problemWith: (answered: Answered) => string | null;
let port: number;
const known = nothingKnown();
const noting = createNoting(known);

const env = {
  ENRICHMENT_INTAKE_PER_MINUTE: '100000',
  API_REQUESTS_PER_SECOND: '15000',
  RETRY_BASE_SECONDS: '0.2',
  CAPTURES_PER_SECOND: '1000',
  CAPTURES_PER_SECOND_PER_TRACKER: '1000',
  // So that some are refused for it on any machine.
  CAPTURES_PER_SECOND_PER_VISITOR: '2',
};

beforeAll(async () => {
  const provider = scriptedProvider();
  const record_ = [aCompany('A'), record({ match_type: 'isp' }), record({}), 'fails', 'hangs'] as const;
  for (let n = 0; n <= 255; n += 1) provider.says(`9.1.1.${n}`, record_[n % record_.length] ?? null);
  const second = scriptedProvider('second');
  for (let n = 0; n <= 255; n += 7) second.says(`9.1.1.${n}`, 'fails');
  dns = await startTestDns();
  for (let n = 0; n < 40; n += 2) dns.says(`s${n}.visits.example`, [SERVICE_HOST]);
  api = await startApi({
    clock,
    env: { ...env, PUBLIC_URL: `http://${SERVICE_HOST}`, DNS_SERVERS: dns.address },
    providers: [provider, second],
  });
  const made: Key[] = [
    await api.key(),
    await api.key({ company_signals: true }),
    await api.key({ requests_per_second: 2 }),
    await api.key({ new_enrichments_per_day: 0 }),
    await api.key({ pending_enrichments: 2 }),
  ];
  // The first two are the likely ones.
  const [plain, clues] = made.map(({ api_key }) => `Bearer ${api_key}`);
  keys = [
    ...Array(12).fill(plain),
    ...Array(6).fill(clues),
    ...made.slice(2).map(({ api_key }) => `Bearer ${api_key}`),
  ];
  keys = [...keys, null, 'Bearer x', 'Basic eDp5', 'Bearer', '', `${plain} `];
  if (made[0] && made[1]) await setScene(made[0], made[1]);
  const document = await api.app.inject({ method: 'GET', url: '/openapi.json' });
  problemWith = conformity(document.json());
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const address = api.app.server.address();
  port = typeof address === 'object' && address ? address.port : 0;
}, 60_000);
afterAll(async () => {
  await api.close();
  dns.close();
});

/** Trackers in every state with some sessions each: on the active one, of every address that the providers know. */
const setScene = async (key: Key, other: Key): Promise<void> => {
  const make = (by: Key) => makeTracker(api, by, { origins: [ORIGIN] });
  const [active, disabled, deleted] = [await make(key), await make(key), await make(key)];
  const visited = [...Array<string>(61).fill(active), ...Array<string>(20).fill(disabled), deleted, deleted];
  for (const [n, tracker] of visited.entries()) await collect(api, tracker, { ip: `9.1.1.${n}` });
  await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${disabled}` });
  await api.inject(key, { method: 'POST', url: `/v1/trackers/${deleted}/delete` });
  noting((await api.inject(key, { method: 'GET', url: '/v1/sessions?limit=100' })).body);
  // The first is the likely one.
  const others = await make(other);
  known.trackers.push(...Array<string>(7).fill(active), disabled, deleted, others);
  // For the likely key to find taken.
  for (let n = 0; n < 9; n += 1) await domainsOf(api, other, others).claim(`s${n}.visits.example`);
};

const authorization = fc.noBias(fc.nat(9_999)).map((n) => keys[n % keys.length] ?? null);
const request = requestWith(known, authorization);
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never;

const headersOf = ({ headers: given, authorization }: Request) => ({
  ...given,
  ...(authorization === null ? {} : { authorization }),
});

const seen = new Map<string, number>();
/** Notes what came and @throws Error that says what is wrong with it */
const judge = (asked: Request, answered: Answered): void => {
  const problem = problemWith(answered);
  const code = /"code":"(\w+)"/.exec(answered.text)?.[1] ?? '';
  const kind = `${answered.status} ${code}`.trim();
  seen.set(kind, (seen.get(kind) ?? 0) + 1);
  if (answered.status < 300) noting(answered.text);
  // Promised everywhere, and never right: it shows a mistake in the service.
  const found = code === 'service_unavailable' ? 'an unexpected failure' : problem;
  if (found)
    throw new Error(
      `${found}\n${JSON.stringify({ ...asked, body: asked.body.toString() })}\n${answered.status} ${answered.text.slice(0, 600)}`,
    );
};

const injected = async (asked: Request): Promise<void> => {
  const withBody = asked.method !== 'GET' && asked.method !== 'HEAD';
  const answer = await api.app.inject({
    method: asked.method as NonNullable<InjectOptions['method']>,
    url: asked.target,
    headers: headersOf(asked),
    ...(withBody ? { payload: asked.body } : {}),
  });
  const { statusCode: status, headers: got, payload: text } = answer;
  judge(asked, { method: asked.method, target: asked.target, status, headers: got, text });
};

/** One wrong answer says more than the thirty requests that it was among. */
const tell = async <T>(details: fc.RunDetails<T>): Promise<void> => {
  const { failed, seed, counterexamplePath, errorInstance } = details;
  if (!failed) return;
  throw new Error(`seed ${seed}, path ${counterexamplePath}: ${(errorInstance as Error).message}`, {
    cause: errorInstance,
  });
};

describe('whatever is sent', () => {
  it(
    `gets an answer that the OpenAPI document promises: ${REQUESTS} requests`,
    async () => {
      let sent = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(request, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (requests) => {
          // Time goes by, so that results become stale, days end and sessions expire.
          if (sent % (AT_ONCE * 40) === 0) offset += 2 * DAY;
          sent += requests.length;
          await Promise.all(requests.map(injected));
        }),
        { numRuns: Math.ceil(REQUESTS / AT_ONCE), endOnFailure: true, asyncReporter: tell },
      );
      expect(sent).toBeGreaterThanOrEqual(REQUESTS);
      if (process.env.SEEN) process.stdout.write(JSON.stringify([...seen].sort()));
      // The generators must reach the states that matter, or the rest proves nothing.
      const isLong = REQUESTS >= 20_000;
      const expected = [
        ...['200', '202', '204', '400 invalid_ip', '400 invalid_range', '400 invalid_json'],
        ...['401 unauthorized', '404 not_requested', '405 method_not_allowed', '413 body_too_large'],
        ...[
          '429 rate_limit',
          '429 tracking_capacity',
          '400 invalid_capture',
          '400 invalid_custom_parameters',
        ],
        ...['400 invalid_cursor', '400 invalid_idempotency_key', '403 tracker_origin_denied'],
        ...['404 tracker_not_found', '404 session_not_found', '404 reveal_not_found', '410 tracker_deleted'],
        ...['410 session_expired', '410 reveal_expired'],
        ...['400 invalid_webhook', '400 invalid_webhook_url', '404 webhook_not_found', '429 webhook_limit'],
        ...['400 invalid_webhook_query', '404 webhook_delivery_not_found'],
        ...['400 invalid_domain', '404 domain_not_found'],
      ];
      const missing = expected.filter((kind) => (seen.get(kind) ?? 0) <= (isLong ? 20 : 0));
      // Few requests miss some of the states that take days to come.
      expect(missing.length, String(missing)).toBeLessThanOrEqual(isLong ? 0 : 6);
      const rare = ['403 untrusted_collector', '409 idempotency_conflict', '409 tracker_disabled'];
      for (const kind of isLong ? [...rare, '409 webhook_rotation_pending', '409 domain_taken'] : [])
        expect(seen.get(kind) ?? 0, kind).toBeGreaterThan(5);
      expect(known.reveals.length).toBeGreaterThan(isLong ? REQUESTS / 1_000 : 0);
      expect(known.deliveries.length).toBeGreaterThan(isLong ? REQUESTS / 3_000 : 0);
      expect(known.domains.length).toBeGreaterThan(isLong ? REQUESTS / 3_000 : 0);
    },
    LIMIT_MS,
  );

  it(
    'also over a socket, where bytes need not be text',
    async () => {
      const noise = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
      const raw = fc.tuple(request, fc.option(noise, { freq: 4 }));
      await fc.assert(
        fc.asyncProperty(fc.array(raw, { minLength: 10, maxLength: 10 }), async (requests) => {
          await Promise.all(
            requests.map(async ([asked, noisy]) => {
              const at = noisy === null ? asked.target : `${asked.target}${noisy}`;
              const answered = await exchange(port, { ...asked, target: at, headers: headersOf(asked) });
              if (answered) judge(asked, answered);
            }),
          );
        }),
        { numRuns: OVER_A_SOCKET / 10, endOnFailure: true, asyncReporter: tell },
      );
    },
    LIMIT_MS,
  );

  it('stops no projection and no processor', () => nothingStops(api), LIMIT_MS);
});
