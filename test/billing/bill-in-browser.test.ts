/** The check of a bill in the browser, by WebCrypto, against a ledger in the event store. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDailyAnchors } from '../../processors/billing/daily-anchors.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { describeInBrowser, startBrowser } from '../support/browser.ts';
import { loggedIn, makeUser } from '../support/dashboard.ts';
import { complete, completedReveal } from '../support/reveals.ts';

const clock = manualClock();

describeInBrowser('the check of a bill in Chromium', () => {
  let api: TestApi;
  let browser: Browser;
  let page: Page;
  let port: string;
  const asked: string[] = [];

  beforeAll(async () => {
    [api, browser] = await Promise.all([startApi({ clock }), startBrowser()]);
    ({ port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 })));
    const key = await api.key();
    for (const day of ['2026-02-10', '2026-02-20', '2026-03-01', '2026-03-02', '2026-03-03'])
      await complete(
        api.runtime.store,
        completedReveal({ partner_id: key.partner_id, completed_at: `${day}T10:00:00.000Z` }, true),
      );
    await api.inject(key, { method: 'GET', url: '/v1/ledger' });
    await createDailyAnchors(api.runtime)();
    const { cookie } = await loggedIn(api, await makeUser(api, key.partner_id));
    const context = await browser.newContext();
    const [name = '', value = ''] = cookie.split('=');
    await context.addCookies([
      { name, value, domain: 'localhost', path: '/', secure: true, httpOnly: true, sameSite: 'Lax' },
    ]);
    page = await context.newPage();
    page.on('request', (request) => asked.push(new URL(request.url()).host));
  });
  afterAll(async () => {
    await browser?.close();
    await api?.close();
  });

  const open = (host = 'localhost') => page.goto(`http://${host}:${port}/dashboard/billing/2026-03`);
  const checked = async (): Promise<string | null> => {
    await page.getByRole('button', { name: 'Check in this browser' }).click();
    const line = page.locator('#ledger-check [role=status]');
    await expect.poll(() => line.textContent()).not.toMatch(/^$|Checking/);
    return line.textContent();
  };

  it('proves all entries, the anchor and the totals of the month, and asks no other host', async () => {
    await open();
    expect(await checked()).toBe(
      'The digests of all 5 entries fit, and so does the signed anchor. 2026-03: 3 entries, 3 units.',
    );
    expect(new Set(asked)).toEqual(new Set([`localhost:${port}`]));
    expect(await page.locator('main').textContent()).toContain('This command is the proof to rely on');
  });

  it.each([
    ['a changed unit', (line: string) => line.replace('"units":1', '"units":0'), 'entry 0 does not fit'],
    ['a missing entry', () => '', 'entry 1 does not fit'],
  ])('finds %s', async (_what, change, found) => {
    const month = '**/billing/2026-02/ledger.jsonl';
    await page.route(month, async (route) => {
      const answer = await route.fetch();
      const [first = '', ...rest] = (await answer.text()).trim().split('\n');
      const body = [change(first), ...rest].filter(Boolean).join('\n');
      await route.fulfill({ response: answer, body });
    });
    await open();
    expect(await checked()).toBe(`Not proven: ${found}.`);
    await page.unroute(month);
  });

  it('says that it cannot read the entries of a month that is refused, and calls nothing unproven', async () => {
    const month = '**/billing/2026-02/ledger.jsonl';
    await page.route(month, (route) =>
      route.fulfill({ status: 409, body: 'more entries than a file holds' }),
    );
    await open();
    expect(await checked()).toBe('The entries cannot be read here. Use the command above.');
    await page.unroute(month);
  });

  it('finds an anchor that was signed by another key', async () => {
    await page.route('**/dashboard/billing/2026-03', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.text()).replace(
        /(&quot;signature&quot;:&quot;)(\w)/,
        (_, before: string, first: string) => before + (first === 'A' ? 'B' : 'A'),
      );
      await route.fulfill({ response: answer, body });
    });
    await open();
    expect(await checked()).toBe('Not proven: the signature of the anchor is wrong.');
    await page.unroute('**/dashboard/billing/2026-03');
  });
});
