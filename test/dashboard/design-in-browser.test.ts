/** What the design's parts do in a browser with scripts: cards of charts, heads that sort, filters that act at once, the way of the keyboard. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { describeInBrowser, startBrowser } from '../support/browser.ts';
import { loggedIn, makeUser } from '../support/dashboard.ts';
import { collect, makeTracker } from '../support/tracking.ts';

const clock = manualClock();

describeInBrowser('in Chromium', () => {
  let api: TestApi;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let key: Key;
  let base: string;

  beforeAll(async () => {
    [api, browser] = await Promise.all([startApi({ clock }), startBrowser()]);
    const { port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
    base = `http://localhost:${port}/dashboard`;
    key = await api.key();
    const tracker = await makeTracker(api, key);
    // Of the United States and of Germany.
    for (const ip of ['8.8.8.8', '5.9.7.4']) await collect(api, tracker, { ip });
    await api.caughtUp();
    const { cookie } = await loggedIn(api, await makeUser(api, key.partner_id));
    context = await browser.newContext();
    const [name = '', value = ''] = cookie.split('=');
    await context.addCookies([
      { name, value, domain: 'localhost', path: '/', secure: true, httpOnly: true, sameSite: 'Lax' },
    ]);
    page = await context.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await api?.close();
  });
  beforeEach(() => clock.advance(1_000));

  it('a chart shows the figures of a day on focus, and of the others by the arrow keys', async () => {
    await page.goto(base);
    expect(await page.locator('.card').count()).toBe(0);
    await page.getByRole('link', { name: 'Lookups' }).focus();
    await page.keyboard.press('Tab');
    const today = await page.locator('.card').textContent();
    expect(today).toMatch(/^\d+ \w{3}Sessions 2$/);
    await page.keyboard.press('ArrowLeft');
    const before = await page.locator('.card').textContent();
    expect(before).toMatch(/^\d+ \w{3}Sessions 0$/);
    await page.keyboard.press('End');
    expect(await page.locator('.card').textContent()).toBe(today);
    await page.keyboard.press('Escape');
    expect(await page.locator('.card').count()).toBe(0);
  });

  it('heads sort a list that is whole, either way', async () => {
    for (const requests_per_second of [7, 30, 200]) await api.key({ requests_per_second }, key.partner_id);
    await page.goto(`${base}/keys`);
    const column = async () =>
      (await page.locator('td[data-label="Requests a second"]').allTextContents()).map(Number);
    await page.getByRole('button', { name: 'Requests a second' }).click();
    const rising = await column();
    expect(rising).toEqual(rising.toSorted((a, b) => a - b));
    expect(new Set(rising).size).toBeGreaterThan(2);
    await page.getByRole('button', { name: 'Requests a second' }).click();
    expect(await column()).toEqual(rising.toReversed());
    expect(await page.locator('th[aria-sort=descending]').textContent()).toBe('Requests a second');
  });

  it('a filter acts when it is changed, and ends by its chip', async () => {
    await page.goto(`${base}/sessions`);
    expect(await page.locator('input[name=session_id]').count()).toBe(2);
    await page.locator('summary', { hasText: 'Filter' }).click();
    expect(await page.getByRole('button', { name: 'Apply' }).count()).toBe(0);
    await page.getByLabel('Country').fill('Germany');
    await page.keyboard.press('Enter');
    await page.waitForURL(/country=Germany/);
    expect(await page.locator('input[name=session_id]').count()).toBe(1);
    await page.getByRole('link', { name: 'Country: Germany' }).click();
    await page.waitForURL(/sessions\?$/);
    expect(await page.locator('input[name=session_id]').count()).toBe(2);
  });

  it('the keyboard reaches what a page offers in the order of the page', async () => {
    await page.goto(`${base}/sessions`);
    const marked = Number(
      await page.evaluate(`(() => {
        const offered = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), summary, [tabindex="0"]')]
          .filter((one) => one.checkVisibility());
        offered.forEach((one, nth) => { one.dataset.nth = nth; });
        return offered.length;
      })()`),
    );
    expect(marked).toBeGreaterThan(20);
    const reached: number[] = [];
    for (let nth = 0; nth < marked; nth += 1) {
      await page.keyboard.press('Tab');
      reached.push(Number(await page.evaluate('document.activeElement.dataset.nth')));
    }
    expect(reached).toEqual(Array.from({ length: marked }, (_, nth) => nth));
  });
});
