import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { signalsIntake } from '../../bin/modules/signals.ts';
import { DAY, HOUR, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { type EventStore, OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../event-store/port.ts';
import { companySignals } from '../../http/contract/schemas/company-signals.ts';
import { type OpsServer, startOpsServer } from '../../platform/telemetry/ops-server.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { type SentSignal, signal } from '../support/signals.ts';

const clock = manualClock();
const provider = scriptedProvider();
const faults = faultyStore();
/** Appends to `signals-…` happen, and their answers are lost. */
let answersAreLost = false;
const losing = (store: EventStore): EventStore => ({
  ...store,
  append: async (stream, ...rest) => {
    const appended = await store.append(stream, ...rest);
    if (answersAreLost && stream.startsWith('signals-')) throw new OutcomeUnknown('the answer was lost');
    return appended;
  },
});

let api: TestApi;
let ops: OpsServer;
let enabled: Key;
let plain: Key;
beforeAll(async () => {
  api = await startApi({
    clock,
    providers: [provider],
    aroundStore: (store) => faults.around(losing(store)),
  });
  ops = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    registry: new Registry(),
    readiness: () => ({ ready: true, problems: [] }),
    handlers: { 'POST /signals': signalsIntake(api.runtime) },
    log: { error: () => undefined },
  });
  enabled = await api.key({ company_signals: true });
  plain = await api.key({}, enabled.partner_id);
});
afterEach(() => {
  answersAreLost = false;
  faults.heal();
});
afterAll(async () => {
  await ops.close();
  await api.close();
});

const send = async (body: unknown, headers: Record<string, string> = {}) => {
  const answer = await fetch(`http://127.0.0.1:${ops.port}/signals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const answered = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, headers: answer.headers, body: answered };
};
const take = async (...signals: SentSignal[]) => {
  const { status, body } = await send({ signals });
  expect(status).toBe(202);
  return body;
};
const at = (ip: string, over: SentSignal = {}) => signal(clock.now(), { ip, ...over });
/** What an enabled key's GET says of the address; on a busy machine they may come too late once. */
const cluesOf = async (ip: string) => {
  const answer = await eventually(
    `the clues about ${ip} are read`,
    () => api.get(enabled, ip),
    (one) => one.json().company_signals?.status === 'available',
  );
  return companySignals.parse(answer.json().company_signals);
};
const NONE = { status: 'available', window_days: 30, truncated: false, candidates: [] };

describe('POST /signals', () => {
  it('is 202 with how many were new, and counts each event_id once', async () => {
    const [one, other] = [at('6.0.0.1'), at('6.0.0.1')];
    expect(await take(one, other, one)).toEqual({ accepted: 2, duplicates: 1 });
    expect(await take(one, at('6.0.0.1'), { ...other, email_domain: 'else.io' })).toEqual({
      accepted: 1,
      duplicates: 2,
    });
    clock.advance(DAY);
    expect(await take(other)).toEqual({ accepted: 0, duplicates: 1 });
    expect(await take()).toEqual({ accepted: 0, duplicates: 0 });
    expect((await cluesOf('6.0.0.1')).candidates).toMatchObject([{ observations: 3 }]);
  });

  it('counts once what is left out, too', async () => {
    const left = at('6.0.0.2', { email_domain: 'gmail.com' });
    expect(await take(left, left)).toEqual({ accepted: 1, duplicates: 1 });
    expect(await take(left)).toEqual({ accepted: 0, duplicates: 1 });
    await take(
      at('6.0.0.2', { email_domain: 'mail.example.com' }),
      at('6.0.0.2', { email_domain: 'a.test' }),
    );
    expect(await cluesOf('6.0.0.2')).toEqual(NONE);
  });

  it('counts a batch once that many send at the same time', async () => {
    const batch = Array.from({ length: 50 }, () => at('6.0.0.3'));
    const answers = await Promise.all(Array.from({ length: 8 }, () => take(...batch)));
    expect(answers.reduce((sum, { accepted }) => sum + Number(accepted), 0)).toBe(50);
    expect((await cluesOf('6.0.0.3')).candidates).toMatchObject([{ observations: 50 }]);
  });

  it('refuses a batch for one wrong entry, with its index, and writes nothing of it', async () => {
    const right = at('6.0.0.5');
    const wrong = at('6.0.0.5', { email_domain: 'someone@acme.io' });
    const { status, body } = await send({ signals: [right, right, wrong, right] });
    expect([status, body]).toEqual([400, { error: 'invalid_signal', index: 2, field: 'email_domain' }]);
    const more = Array.from({ length: 1_001 }, () => right);
    expect(await send({ signals: more })).toMatchObject({
      status: 400,
      body: { error: 'invalid_signal', index: 1_000 },
    });
    expect(await cluesOf('6.0.0.5')).toEqual(NONE);
    expect(await take(right)).toEqual({ accepted: 1, duplicates: 0 });
  });

  it('refuses an invalid batch', async () => {
    expect(await send('{')).toMatchObject({ status: 400, body: { error: 'invalid_json' } });
    expect(await send('')).toMatchObject({ status: 400, body: { error: 'invalid_json' } });
    expect(await send([])).toMatchObject({ status: 400, body: { error: 'invalid_body' } });
    expect(await send({ signals: [] }, { 'content-type': 'text/plain' })).toMatchObject({
      status: 415,
      body: { error: 'unsupported_media_type' },
    });
    expect(await send({ signals: [] }, { 'content-encoding': 'gzip' })).toMatchObject({
      status: 415,
      body: { error: 'unsupported_encoding' },
    });
    expect(await send('x'.repeat(2 * 1_024 * 1_024 + 1))).toMatchObject({
      status: 413,
      body: { error: 'body_too_large' },
    });
  });

  it.each([
    [() => new StoreUnavailable('gone'), 'backend_unavailable'],
    [() => new StoreBusy('busy'), 'api_busy'],
  ])('says that it is not written where it is not, %#', async (fault, error) => {
    faults.failAppends('signals-', fault);
    expect(await send({ signals: [at('6.0.0.6')] })).toMatchObject({ status: 503, body: { error } });
  });
});

describe('an enabled key', () => {
  it('gets what is known of an address, whatever the lookup answers', async () => {
    provider.says('6.1.0.1', 'hangs');
    await take(at('6.1.0.1', { page_run_id: 'run', evidence: 'field_only' }));
    const expected = {
      ...NONE,
      candidates: [
        {
          domain: 'acme.io',
          company: null,
          verified: false,
          evidence: 'field_only',
          first_seen_at: isoTime(clock.now()),
          last_seen_at: isoTime(clock.now()),
          observations: 1,
          submitted_observations: 0,
          observed_visits: 1,
          sites: 1,
          flags: ['field_only', 'unmatched_domain', 'single_observation'],
        },
      ],
    };
    expect(await cluesOf('6.1.0.1')).toEqual(expected);
    const answered = async (answer: Promise<Awaited<ReturnType<TestApi['get']>>>) => {
      const { statusCode, ...rest } = await answer;
      return [statusCode, rest.json().company_signals];
    };
    expect(await answered(api.get(enabled, '6.1.0.1'))).toEqual([404, expected]);
    expect(await answered(api.post(enabled, '6.1.0.1'))).toEqual([202, expected]);
    expect(await answered(api.get(enabled, '::ffff:6.1.0.1'))).toEqual([202, expected]);
    faults.failAppends('usage-', () => new OutcomeUnknown('no answer'));
    expect(await answered(api.get(enabled, '6.1.0.1'))).toEqual([503, expected]);
    faults.heal();
    faults.failReads('enrichment-', () => new StoreUnavailable('gone'));
    expect(await answered(api.post(enabled, '6.1.0.1'))).toEqual([503, expected]);
    faults.heal();
    provider.says('6.1.0.2', aCompany('Six', { company: { name: 'Six', website: 'six.io' } }));
    await api.post(enabled, '6.1.0.2');
    await api.settled(enabled, '6.1.0.2');
    expect(await answered(api.get(enabled, '6.1.0.2'))).toEqual([200, NONE]);
    expect(await answered(api.post(enabled, '6.1.0.2'))).toEqual([200, NONE]);
  });

  it('gets nothing with other refusals, and other keys never get anything', async () => {
    await take(at('6.1.1.1'));
    const carries = async (answer: ReturnType<TestApi['get']>) => 'company_signals' in (await answer).json();
    expect(await carries(api.get(enabled, 'nonsense'))).toBe(false);
    expect(await carries(api.post(enabled, 7))).toBe(false);
    expect(await carries(api.get(plain, '6.1.1.1'))).toBe(false);
    expect(await carries(api.post(plain, '6.1.1.1'))).toBe(false);
    await api.settled(plain, '6.1.1.1');
    // From what is cached: first for one, then for the other, and back.
    expect(await carries(api.get(plain, '6.1.1.1'))).toBe(false);
    expect(await carries(api.get(enabled, '6.1.1.1'))).toBe(true);
    expect(await carries(api.get(plain, '6.1.1.1'))).toBe(false);
    expect(await carries(api.usage(enabled))).toBe(false);
  });

  it('gets what speaks for a clue, and what against it', async () => {
    const companyAt = async (ip: string, name: string, website: string) => {
      provider.says(ip, aCompany(name, { company: { name, website } }));
      await api.post(plain, ip);
      await api.settled(plain, ip);
    };
    await companyAt('6.2.0.1', 'Acme', 'https://www.acme-two.io/');
    await companyAt('6.2.0.2', 'Shared One', 'shared.io');
    await companyAt('6.2.0.3', 'Shared Two', 'shared.io');
    await companyAt('6.2.0.4', 'Lookup', 'lookup.io');
    for (const email_domain of ['acme-two.io', 'shared.io', 'unknown.io', 'lookup.io']) {
      clock.advance(MINUTE);
      await take(at('6.2.0.4', { email_domain }), at('6.2.0.4', { email_domain }));
    }
    const { candidates } = await cluesOf('6.2.0.4');
    expect(candidates.map(({ domain, company, flags }) => [domain, company?.name ?? null, flags])).toEqual([
      ['lookup.io', 'Lookup', []],
      ['unknown.io', null, ['unmatched_domain']],
      ['shared.io', null, ['ambiguous_domain']],
      ['acme-two.io', 'Acme', ['differs_from_lookup']],
    ]);
    await take(at('6.2.0.5', { email_domain: 'acme-two.io' }));
    expect((await cluesOf('6.2.0.5')).candidates).toMatchObject([
      { company: { name: 'Acme', website: 'https://www.acme-two.io/' }, flags: ['single_observation'] },
    ]);
  });

  it('gets how much was seen: events, submits, visits, sites, over the days', async () => {
    const first = clock.now();
    await take(
      at('6.3.0.1', { page_run_id: 'one', evidence: 'field_only' }),
      at('6.3.0.1', { page_run_id: 'one', evidence: 'submitted' }),
      at('6.3.0.1', { page_run_id: null, site: 'other-site.io' }),
    );
    clock.advance(DAY);
    await take(at('6.3.0.1', { page_run_id: 'two', installation_id: 'installation-2' }));
    expect((await cluesOf('6.3.0.1')).candidates).toEqual([
      expect.objectContaining({
        evidence: 'submitted',
        first_seen_at: isoTime(first),
        last_seen_at: isoTime(clock.now()),
        observations: 4,
        submitted_observations: 3,
        observed_visits: 2,
        sites: 3,
      }),
    ]);
  });

  it('gets ten, newest first, and that there are more', async () => {
    for (let n = 0; n < 11; n += 1) {
      await take(at('6.4.0.1', { email_domain: `n${n}.io`, occurred_at: isoTime(clock.now() - n * MINUTE) }));
      const { truncated, candidates } = await cluesOf('6.4.0.1');
      expect([truncated, candidates.length]).toEqual([n === 10, Math.min(n + 1, 10)]);
    }
    const { candidates } = await cluesOf('6.4.0.1');
    expect(candidates.map(({ domain }) => domain)).toEqual(Array.from({ length: 10 }, (_, n) => `n${n}.io`));
  });

  it('gets the last 30 days, by our clock', async () => {
    const begun = clock.now();
    await take(
      at('6.5.0.1', { occurred_at: isoTime(begun - 30 * DAY + HOUR) }),
      at('6.5.0.1', { occurred_at: isoTime(begun) }),
      at('6.5.0.1', { email_domain: 'old.io', occurred_at: isoTime(begun - 30 * DAY) }),
    );
    const seen = async () =>
      (await cluesOf('6.5.0.1')).candidates.map((one) => [one.domain, one.observations]);
    expect(await seen()).toEqual([['acme.io', 2]]);
    clock.advance(HOUR - 1);
    expect(await seen()).toEqual([['acme.io', 2]]);
    clock.advance(1);
    expect(await seen()).toEqual([['acme.io', 1]]);
    clock.set(begun + 30 * DAY - 1);
    expect(await seen()).toEqual([['acme.io', 1]]);
    clock.set(begun + 30 * DAY);
    expect(await seen()).toEqual([]);
    clock.set(begun + 31 * DAY);
    expect(await seen()).toEqual([]);
  });

  it('gets `unavailable` where the clues cannot be read, soon, and no other key waits', async () => {
    provider.says('6.6.0.1', aCompany('Six'));
    await api.post(plain, '6.6.0.1');
    await api.settled(plain, '6.6.0.1');
    const holder = await api.sql.connect();
    try {
      await holder.query('begin; lock table read.signal_day, read.signal in access exclusive mode');
      const started = performance.now();
      const answers = await Promise.all(Array.from({ length: 30 }, () => api.get(enabled, '6.6.0.1')));
      expect(performance.now() - started).toBeLessThan(3_000);
      for (const answer of answers) {
        expect([answer.statusCode, answer.json().company_signals]).toEqual([
          200,
          { ...NONE, status: 'unavailable' },
        ]);
      }
      // The connections of other lookups are free: one that is in no cache is read.
      expect((await api.get(plain, '::ffff:6.6.0.1')).statusCode).toBe(200);
      expect((await api.get(plain, '6.6.0.2')).statusCode).toBe(404);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(await cluesOf('6.6.0.1')).toEqual(NONE);
  });
});
