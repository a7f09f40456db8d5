/** What pages gain from their script on the way to a first visit, and at a secret that is shown once. */
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
  });
  beforeEach(async () => {
    clock.advance(1_000);
    key = await api.key();
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

  it('Home shows the first visit by itself to somebody who has just copied the snippet', async () => {
    const tracker = await makeTracker(api, key);
    await page.goto(base);
    await page.getByRole('button', { name: 'Copy' }).click();
    await collect(api, tracker);
    await page.getByText('See its visits').waitFor({ timeout: 20_000 });
    await context.close();
  });

  it('the page of a new secret asks before it is left, until the secret is copied or said to be kept', async () => {
    const made = await api.inject(key, {
      method: 'POST',
      url: '/v1/webhooks',
      payload: { name: 'hook', url: 'https://hooks.example.com/x', events: ['session.created'] },
    });
    await page.goto(`${base}/webhooks/${made.json().id}/rotate`);
    await page.getByRole('button', { name: 'Rotate the secret' }).click();
    await page.getByText('This is shown once.').waitFor();
    let asked = 0;
    page.on('dialog', (dialog) => {
      asked += 1;
      void dialog.dismiss();
    });
    await page.getByRole('button', { name: 'Send a test' }).click();
    expect([asked, await page.getByText('This is shown once.').isVisible()]).toEqual([0, true]);
    await page.getByRole('link', { name: 'Keys', exact: true }).click({ noWaitAfter: true });
    await expect.poll(() => asked).toBe(1);
    expect(await page.getByText('This is shown once.').isVisible()).toBe(true);
    await page.getByLabel('I have kept the new secret').check();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('It was shown once, when the rotation began.').waitFor();
    expect(asked).toBe(1);
    await context.close();
  });
});
