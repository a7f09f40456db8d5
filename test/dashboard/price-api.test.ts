import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { amountOf, moneyText, unitPriceText, unitsText } from '../../web/dashboard/price.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse, cookieOf, type LoggedIn, loggedIn, makeUser, type TestUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const price = (millionths: number, currency = 'EUR') => ({ millionths, currency });

describe('a price', () => {
  it.each([
    [price(120_000), 3, '0.36'],
    [price(5_000), 1, '0.01'],
    [price(4_999), 1, '0.00'],
    // Rounded once, not for each unit.
    [price(4_999), 1_000, '5.00'],
    [price(1), 1_000_000_000, '1000.00'],
    [price(1_500_000, 'JPY'), 1, '2'],
    [price(1_234_567, 'KWD'), 1, '1.235'],
    [price(0), 7, '0.00'],
  ])('of %j makes %i units cost %s', (of, units, amount) => {
    expect(amountOf(of, units)).toBe(amount);
  });

  it('is written with its currency, and a unit with all places', () => {
    const text = (spaced: string) => spaced.replaceAll('\u00a0', ' ');
    expect(text(moneyText(price(120_000), 10_000))).toBe('EUR 1,200.00');
    expect(text(unitPriceText(price(1_234)))).toBe('EUR 0.001234');
    expect(text(unitsText(price(120_000), 1))).toBe('1 unit (EUR 0.12 at today’s price)');
    expect(unitsText(null, 2)).toBe('2 units');
  });
});

describe.each(['0.125 EUR', undefined])('with the price %s', (UNIT_PRICE) => {
  const isPriced = UNIT_PRICE !== undefined;
  const clock = manualClock();
  const provider = scriptedProvider();
  let api: TestApi;
  let key: Key;
  let user: TestUser;
  let page: LoggedIn;
  const sessions: string[] = [];
  const textOf = async (path: string): Promise<string> =>
    (await page.get(path)).body.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

  beforeAll(async () => {
    api = await startApi({
      clock,
      providers: [provider],
      env: UNIT_PRICE === undefined ? {} : { UNIT_PRICE },
    });
    key = await api.key();
    user = await makeUser(api, key.partner_id);
    page = await loggedIn(api, user);
    const tracker = await makeTracker(api, key);
    for (const ip of ['8.8.8.8', '1.1.1.1', '9.9.9.9']) {
      provider.says(ip, aCompany(`Of ${ip}`));
      await collect(api, tracker, { ip });
    }
    const found = await feed(api, key, `tracker_id=${tracker}`);
    sessions.push(...found.sessions.map(({ session_id }) => String(session_id)));
  });
  afterAll(() => api.close());
  beforeEach(() => clock.advance(1_000));

  it('says what reveals cost before, and how many units they took after', async () => {
    const [one, two, three] = sessions;
    // So that the results are there at once.
    for (const ip of ['8.8.8.8', '1.1.1.1', '9.9.9.9'])
      await eventually(
        'the address is looked up',
        () => api.inject(key, { method: 'POST', url: '/v1/lookup', payload: { ip } }),
        ({ statusCode }) => statusCode === 200,
      );
    const asked = await textOf(`/sessions/reveal?session_id=${one}&session_id=${two}`);
    expect(asked).toContain(isPriced ? 'at most 2 units (EUR 0.25 at today’s price)' : 'at most 2 units :');
    expect(await textOf(`/sessions/${three}/reveal`)).toContain(
      isPriced ? '1 unit (EUR 0.13 at today’s price)' : 'costs 1 unit if',
    );
    const session = [one, two].map((id) => `${id} ${crypto.randomUUID()}`);
    const revealed = await page.send('/sessions/reveal', { session, back: '/dashboard/sessions' });
    const cookie = `${page.cookie}; ${cookieOf(revealed)}`;
    const list = await browse(api, 'GET', '/dashboard/sessions', { cookie });
    expect(list.body).toContain('2 sessions are revealed, for 2 units.');
    const headers = { 'idempotency-key': crypto.randomUUID() };
    await api.inject(key, { method: 'POST', url: `/v1/sessions/${three}/reveal`, headers });
  });

  it('shows units by key and by user on Usage, and what they cost', async () => {
    const text = await textOf('/usage');
    expect(text).toMatch(/Units by key and by user, all websites.* user 2 2 .* key 1 1 /);
    expect(text.includes('At today’s price EUR 0.38')).toBe(isPriced);
    const lines = (await page.get('/usage/units.csv')).body.split('\r\n');
    expect(lines[0]).toBe(
      `\uFEFFkind,id,name,completed_reveals,units${isPriced ? ',amount_today,currency' : ''}`,
    );
    expect(lines[1]).toBe(`user,${user.user_id},${user.name},2,2${isPriced ? ',0.25,EUR' : ''}`);
  });

  it('shows the running month as “so far”, with its amount in the table, the bill and the CSV file', async () => {
    const month = new Date(clock.now()).toISOString().slice(0, 7);
    const billing = await textOf('/billing');
    expect(billing).toMatch(isPriced ? / so far 3 3 EUR 0\.38 / : / so far 3 3 /);
    expect(billing.includes('Amounts are at today’s price of a unit, EUR 0.125.')).toBe(isPriced);
    const bill = await textOf(`/billing/${month}`);
    expect(bill).toMatch(/<?Bill of \w+ \d{4} so far/);
    expect(bill.includes('EUR 0.38')).toBe(isPriced);
    expect((await page.get('/billing.csv')).body.split('\r\n')).toEqual([
      `\uFEFFmonth,completed_reveals,units${isPriced ? ',amount_today,currency' : ''}`,
      `${month},3,3${isPriced ? ',0.38,EUR' : ''}`,
      '',
    ]);
  });
});
