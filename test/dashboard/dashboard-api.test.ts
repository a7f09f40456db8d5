import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser, type TestUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
const faults = faultyStore();
let api: TestApi;
let key: Key;
let user: TestUser;
let page: LoggedIn;
/** A user of another partner's. */
let stranger: LoggedIn;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider], aroundStore: faults.around });
  key = await api.key();
  user = await makeUser(api, key.partner_id);
  page = await loggedIn(api, user);
  stranger = await loggedIn(api, await makeUser(api, (await api.key()).partner_id));
});
afterAll(() => api.close());

// Past the second that pages and calls are counted in.
beforeEach(() => clock.advance(1_000));

const statusOf = async (answer: Promise<{ statusCode: number }>) => (await answer).statusCode;
const usageOf = (api_key: string) =>
  statusOf(
    api.app.inject({ method: 'GET', url: '/v1/usage', headers: { authorization: `Bearer ${api_key}` } }),
  );
const LIMITS = { requests_per_second: '7', pending_enrichments: '100', new_enrichments_per_day: '3' };

/** A session from an address that a provider knows. */
const visit = async (tracker: string, ip: string, custom: object = {}): Promise<string> => {
  provider.says(ip, aCompany('Acme <script>'));
  await collect(api, tracker, { ip, body: { custom } });
  const { sessions } = await feed(api, key, `tracker_id=${tracker}&limit=100`);
  return sessions.at(-1)?.session_id as string;
};
const idempotencyKeyIn = (body: string) => /name="idempotency_key" value="([^"]+)"/.exec(body)?.[1] ?? '';

describe('keys', () => {
  it('are created and changed within the changes of a day, and revoked at any rate', async () => {
    const own = await api.key();
    const browser = await loggedIn(api, await makeUser(api, own.partner_id));
    await api.sql.query(`select work.take_rate('changes of ' || $1, 10000, $2, 9990, $3, 0, 0)`, [
      own.partner_id,
      DAY,
      clock.now(),
    ]);
    const statuses: number[] = [];
    for (let n = 0; n < 12; n += 1) {
      statuses.push(await statusOf(browser.send('/keys', { ...LIMITS, name: `key ${n}` })));
    }
    expect(statuses.filter((status) => status === 201).length).toBeLessThanOrEqual(10);
    const refused = await browser.send(`/keys/${own.key_id}`, LIMITS);
    expect([refused.statusCode, refused.body.includes('rate_limit')]).toEqual([429, true]);
    expect(await statusOf(browser.send(`/keys/${own.key_id}/revoke`))).toBe(303);
  });

  it.each([
    [{ name: '' }, 'invalid_name'],
    [{ name: 'a', requests_per_second: '0' }, 'invalid_limits'],
    [{ name: 'a', requests_per_second: '1.5' }, 'invalid_limits'],
    [{ name: 'a', requests_per_second: '9999999999' }, 'invalid_limits'],
    [{ name: 'a', expires_at: '2026-02-30T10:00' }, 'invalid_limits'],
    [{ name: 'a', expires_at: '0000-01-01T10:00' }, 'invalid_limits'],
  ])('are not created of %j', async (form, code) => {
    const answer = await page.send('/keys', { ...LIMITS, ...form });
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain(code);
  });

  it.each([
    [{ requests_per_second: '51' }, 'ceiling_requests_per_second', 'requests a second'],
    [{ pending_enrichments: '10001' }, 'ceiling_pending_enrichments', 'pending enrichments'],
    [{ company_signals: 'yes' }, 'ceiling_company_signals', 'company signals'],
  ])(
    'are not created above a ceiling of the partner, which the form names: %j',
    async (form, code, words) => {
      const answer = await page.send('/keys', { ...LIMITS, name: 'above', ...form });
      expect(answer.statusCode).toBe(409);
      expect(answer.body).toContain(code);
      expect(answer.body).toContain(words);
      expect((await page.get('/keys/new')).body).toContain('At most 50.');
    },
  );

  it('are listed without all that were ever revoked or have expired, each of which still has its page', async () => {
    const mine = await api.key();
    const listing = await loggedIn(api, await makeUser(api, mine.partner_id));
    await api.sql.query(
      `insert into read.api_key (key_id, partner_id, name, hash, requests_per_second, pending_enrichments, company_signals,
                                 created_at, revoked_at, expires_at)
       select 'key_of_' || n, partner_id, 'old ' || n, 'h' || n, 1, 1, false, created_at,
              case when n <= 60 then created_at + n * interval '1 s' end,
              case when n > 60 then created_at - interval '1 h' + n * interval '1 s' end
       from read.api_key, generate_series(1, 120) n where key_id = $1`,
      [mine.key_id],
    );
    const list = (await listing.get('/keys')).body;
    expect(list).toContain(mine.key_id);
    expect(list.match(/>revoked</g)).toHaveLength(50);
    expect(list).toContain('>old 60<');
    expect(list).not.toContain('>old 1<');
    expect(list.match(/>expired</g)).toHaveLength(50);
    expect(list).toContain('>old 120<');
    expect(list).not.toContain('>old 61<');
    expect((await listing.get('/keys/key_of_1')).body).toContain('Revoked');
    expect((await page.get('/keys/key_of_1')).body).toContain('There is no such key.');
  });

  it('expire at a minute that is chosen, or keep their second when other limits are changed', async () => {
    const expires_at = '2027-01-01T23:59:59.500Z';
    const mine = await api.key({ expires_at }, key.partner_id);
    const expiry = async () =>
      (await api.sql.query('select expires_at from read.api_key where key_id = $1', [mine.key_id])).rows[0];
    await page.send(`/keys/${mine.key_id}`, { ...LIMITS, expires_at: '2027-01-01T23:59' });
    expect(await expiry()).toEqual({ expires_at: new Date(expires_at) });
    await page.send(`/keys/${mine.key_id}`, { ...LIMITS, expires_at: '2027-01-01T23:58' });
    expect(await expiry()).toEqual({ expires_at: new Date('2027-01-01T23:58:00Z') });
  });

  it("of another partner's are not there", async () => {
    for (const path of [`/keys/${key.key_id}`, `/keys/${key.key_id}/revoke`]) {
      expect((await stranger.get(path)).statusCode).toBe(404);
      expect((await stranger.send(path, LIMITS)).statusCode).toBe(404);
    }
    expect(await usageOf(key.api_key)).toBe(200);
  });

  it('tell when they were last used', async () => {
    const mine = await api.key({}, key.partner_id);
    await usageOf(mine.api_key);
    await eventually(
      'it is stored',
      async () => {
        clock.advance(1_000);
        return (await page.get(`/keys/${mine.key_id}`)).body;
      },
      (body) => /last used <time/.test(body),
    );
  });
});

describe('a session', () => {
  it('is revealed for one unit, which stands in the ledger as the user’s, however often the form is sent', async () => {
    const tracker = await makeTracker(api, key);
    const session = await visit(tracker, '5.9.3.1', { plan: '<b>pro</b>' });
    const shown = (await page.get(`/sessions/${session}`)).body;
    expect(shown).toContain('plan: &lt;b&gt;pro&lt;/b&gt;');
    const asked = (await page.get(`/sessions/${session}/reveal`)).body;
    expect(asked).toContain('one unit');
    const form = { idempotency_key: idempotencyKeyIn(asked) };
    const [one, two] = await Promise.all([
      page.send(`/sessions/${session}/reveal`, form),
      page.send(`/sessions/${session}/reveal`, form),
    ]);
    expect(one.statusCode, one.body).toBe(303);
    expect(two.headers.location).toBe(one.headers.location);
    const path = String(one.headers.location).replace('/dashboard', '');
    const receipt = await eventually(
      'it is complete',
      () => page.get(path),
      ({ body }) => body.includes('Acme'),
    );
    expect(receipt.body).toContain('Acme &lt;script&gt;');

    const { runtime } = api;
    const audited = await eventually(
      'the ledger has it',
      () => auditBilling(runtime, { partnerId: key.partner_id, patienceMs: 5_000 }),
      ({ report }) => report.units === 1,
    );
    expect(audited.report.differences).toEqual([]);
    const { rows } = await api.sql.query(
      'select key_id, user_id, units from read.reveal_unit where tracker_id = $1',
      [tracker],
    );
    expect(rows).toEqual([{ key_id: null, user_id: user.user_id, units: 1 }]);
  });

  it('shows its first 50 reveals, however many there are', async () => {
    const mine = await api.key();
    const tracker = await makeTracker(api, mine);
    await collect(api, tracker);
    const session = (await feed(api, mine)).sessions[0]?.session_id;
    const showing = await loggedIn(api, await makeUser(api, mine.partner_id));
    const { rowCount } = await api.sql.query(
      `insert into read.reveal (reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, completed_at, billable,
                                result, last_revision, last_position)
       select gen_random_uuid(), session_id, tracker_id, partner_id, first_seen_at, expires_at, first_seen_at, false, '{}', 0, 0
       from read.session, generate_series(1, 60) where session_id = $1`,
      [session],
    );
    expect(rowCount).toBe(60);
    const receipts = (await showing.get(`/sessions/${session}`)).body.match(/dashboard\/reveals\//g);
    expect(receipts).toHaveLength(50);
    expect((await showing.get('/sessions')).body).toContain('no company found');
  });

  it('keeps its form when the outcome of its reveal is unknown, and shows the outcome when the form is sent again', async () => {
    const session = await visit(await makeTracker(api, key), '5.9.3.4');
    const asked = (await page.get(`/sessions/${session}/reveal`)).body;
    const form = { idempotency_key: idempotencyKeyIn(asked) };
    faults.failAppends('reveal-', () => new OutcomeUnknown('no answer'));
    const unknown = await page.send(`/sessions/${session}/reveal`, form);
    faults.heal();
    expect(unknown.statusCode).toBe(503);
    expect(unknown.body).toContain('reveal_unconfirmed');
    expect(unknown.body).toContain('it is one reveal and at most one');
    expect(idempotencyKeyIn(unknown.body)).toBe(form.idempotency_key);
    expect(await statusOf(page.send(`/sessions/${session}/reveal`, form))).toBe(303);
  });

  it('that is looked at in the dashboard is no request of the API', async () => {
    const tracker = await makeTracker(api, key);
    const session = await visit(tracker, '5.9.3.2');
    await page.get(`/sessions/${session}`);
    await page.get(`/sessions?tracker_id=${tracker}`);
    const asked = (await page.get(`/sessions/${session}/reveal`)).body;
    await page.send(`/sessions/${session}/reveal`, { idempotency_key: idempotencyKeyIn(asked) });
    const usage = await api.inject(key, { method: 'GET', url: `/v1/trackers/${tracker}/usage` });
    // The one page of the feed that this test has read with a key.
    expect(usage.json().totals).toMatchObject({ api_requests: 1, sessions: 1, reveals: 1 });
  });

  it("of another partner's is not there, by whatever path", async () => {
    const tracker = await makeTracker(api, key);
    const session = await visit(tracker, '5.9.3.3');
    expect((await stranger.get(`/sessions/${session}`)).statusCode).toBe(404);
    expect((await stranger.get(`/sessions/${session}/reveal`)).statusCode).toBe(404);
    expect((await stranger.get(`/sessions?tracker_id=${tracker}`)).body).not.toContain(session);
    const form = { idempotency_key: randomUUID() };
    expect((await stranger.send(`/sessions/${session}/reveal`, form)).statusCode).toBe(404);
    expect((await stranger.get(`/trackers/${tracker}`)).statusCode).toBe(404);
    expect((await stranger.send(`/trackers/${tracker}/disable`)).statusCode).toBe(404);
  });

  it('stands on a page of fifty, the newest first, and older ones on the next', async () => {
    const tracker = await makeTracker(api, key);
    for (let n = 0; n < 51; n += 1)
      await collect(api, tracker, { ip: `5.9.4.${n}`, body: { custom: { n } } });
    const first = (await page.get(`/sessions?tracker_id=${tracker}`)).body;
    expect(first.indexOf('n: 50')).toBeLessThan(first.indexOf('n: 1<'));
    expect(first).not.toContain('n: 0<');
    const older =
      /href="\/dashboard(\/sessions\?[^"]+)">Older/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const second = (await page.get(older)).body;
    expect(second).toContain('n: 0<');
    expect(second).not.toContain('n: 1<');
  });
});

describe('the form of a tracker', () => {
  it('takes websites as they are meant, proposes https for http, and changes them', async () => {
    const fields = { name: 'a shop', customer_reference: '' };
    const taken = await page.send('/trackers', {
      ...fields,
      origins: 'shop.example\nhttps://WWW.shop.example/cart *.more.example localhost:4000',
    });
    expect(taken.statusCode).toBe(303);
    const settings = `${String(taken.headers.location).replace('/dashboard', '')}/settings`;
    expect((await page.get(settings)).body).toContain(
      '>https://shop.example\nhttps://www.shop.example\nhttps://*.more.example\nhttp://localhost:4000</textarea>',
    );
    const refused = await page.send('/trackers', { ...fields, origins: 'http://shop.example' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('>https://shop.example</textarea>');
    expect(refused.body).toMatch(
      /<code>http:\/\/shop\.example<\/code> means <code>https:\/\/shop\.example<\/code>/,
    );
    const made = await page.send('/trackers', { ...fields, origins: 'https://shop.example' });
    const path = String(made.headers.location).replace(/^\/dashboard|\?.*$/g, '');
    expect((await page.get(`${path}/settings`)).body).toContain('>https://shop.example</textarea>');
    const change = { name: 'the shop', customer_reference: 'c-7', origins: 'https://www.shop.example' };
    expect((await page.send(`${path}/change`, change)).statusCode).toBe(303);
    const body = (await page.get(`${path}/settings`)).body;
    expect(body).toContain('>https://www.shop.example</textarea>');
    expect(body).toContain('<h1>the shop</h1>');
    const wrong = await page.send(`${path}/change`, { ...change, origins: 'nothing' });
    expect(wrong.body).toContain('<code>nothing</code> is no website');
  });

  it('stands on the page above the address of each action', async () => {
    const tracker = await makeTracker(api, key);
    const gone = await page.get(`/trackers/${tracker}/change`);
    expect([gone.statusCode, gone.headers.location]).toEqual([303, `/dashboard/trackers/${tracker}`]);
    const retry = await page.get('/webhooks/w/deliveries/retry');
    expect([retry.statusCode, retry.headers.location]).toEqual([303, '/dashboard/webhooks/w/deliveries']);
  });
});

describe('the list of sessions', () => {
  it('shows three labels of a visitor, and the page of one all', async () => {
    const tracker = await makeTracker(api, key);
    const custom = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`label${n}`, 'x'.repeat(n === 1 ? 90 : 3)]),
    );
    const session = await visit(tracker, '5.9.77.1', custom);
    const list = (await page.get(`/sessions?tracker_id=${tracker}`)).body;
    // Each label is isolated, since a mark of direction in one would turn those beside it.
    expect(list).toMatch(
      /<bdi class="chip">label0: xxx<\/bdi><bdi class="chip">label1: x{31}…<\/bdi><bdi class="chip">label2: xxx<\/bdi><span class="soft">\+17/,
    );
    expect((await page.get(`/sessions/${session}`)).body).toContain('label19: xxx');
  });
});

describe('the address of the service itself', () => {
  it('leads a browser to the dashboard, and is an unknown path for a program', async () => {
    const asBrowser = await api.app.inject({ method: 'GET', url: '/', headers: { accept: 'text/html,*/*' } });
    expect([asBrowser.statusCode, asBrowser.headers.location]).toEqual([303, '/dashboard']);
    const asProgram = await api.app.inject({ method: 'GET', url: '/' });
    expect([asProgram.statusCode, asProgram.json().error.code]).toEqual([404, 'not_found']);
  });
});

describe('a key', () => {
  it('that would have expired already is refused', async () => {
    const refused = await page.send('/keys', { name: 'too late', ...LIMITS, expires_at: '2001-01-01T00:00' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('expired already');
  });
});

describe('several sessions', () => {
  it('are revealed without those that somebody has revealed since the question was shown', async () => {
    const tracker = await makeTracker(api, key);
    const sessions = [await visit(tracker, '5.9.7.1'), await visit(tracker, '5.9.7.2')];
    const query = `session_id=${sessions.join('&session_id=')}`;
    const asked = (await page.get(`/sessions/reveal?${query}&back=/dashboard/sessions?revealed=no`)).body;
    expect(asked).toContain('at most 2 units');
    const session = [...asked.matchAll(/name="session" value="([^"]+)"/g)].map(
      ([, value]) => value as string,
    );
    const count = async () =>
      (
        await api.sql.query('select count(*)::int as n from read.reveal where session_id = any($1)', [
          sessions,
        ])
      ).rows[0].n;
    const single = (await page.get(`/sessions/${sessions[0]}/reveal`)).body;
    await page.send(`/sessions/${sessions[0]}/reveal`, { idempotency_key: idempotencyKeyIn(single) });
    await eventually('the first is revealed', count, (n) => n === 1);
    const sent = await page.send('/sessions/reveal', { session, back: '/dashboard/sessions?revealed=no' });
    expect(sent.headers.location).toBe('/dashboard/sessions?revealed=no');
    await page.send('/sessions/reveal', { session });
    await eventually('both are revealed', count, (n) => n === 2);
  });

  it('are found by their labels however these are spelled, and by no NUL', async () => {
    const tracker = await makeTracker(api, key);
    await visit(tracker, '5.9.7.3', { plan: 'gold' });
    for (const label of ['plan:gold', 'plan=gold', 'plan: GOLD']) {
      const found = await page.get(`/sessions?tracker_id=${tracker}&label=${encodeURIComponent(label)}`);
      expect(found.body, label).toContain('1 session.');
    }
    for (const path of ['/company?name=%00', '/sessions?company=%00&label=%00', '/companies?company=%00']) {
      expect((await page.get(path)).statusCode, path).toBeLessThan(500);
    }
  });

  it('of a company are those that began in the period', async () => {
    const tracker = await makeTracker(api, key);
    const session = await visit(tracker, '5.9.7.4');
    const asked = (await page.get(`/sessions/${session}/reveal`)).body;
    await page.send(`/sessions/${session}/reveal`, { idempotency_key: idempotencyKeyIn(asked) });
    const of = async (day: string) =>
      (await page.get(`/companies?tracker_id=${tracker}&period=custom&from=${day}&to=${day}`)).body;
    const today = new Date(clock.now()).toISOString().slice(0, 10);
    await eventually(
      'the company is listed',
      async () => {
        await page.get(`/sessions?tracker_id=${tracker}`);
        return of(today);
      },
      (body) => body.includes('1 company.'),
    );
    expect(await of(new Date(clock.now() - DAY).toISOString().slice(0, 10))).toContain('No companies match');
    expect(await of('2026-02-31')).toContain('no period');
  });
});
