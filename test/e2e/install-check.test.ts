import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInBrowser, startBrowser } from '../support/browser.ts';
import { type CustomerSite, startCustomerSite } from '../support/customer-site.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';
import { fill, inspect, press } from './dashboard-pages.ts';

const PASSWORD = 'three wise words';
/** Evidence is at most 10 s late. */
const WRITTEN_MS = 25_000;

describeInBrowser('the install check, of pages in Chromium', () => {
  let service: Service;
  let site: CustomerSite;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const trackers: Record<string, string> = {};

  const makeTracker = async (name: string, origin: string): Promise<void> => {
    const { body } = await service.call('POST', '/v1/trackers', {
      headers: { authorization: `Bearer ${service.demoKey()}`, 'content-type': 'application/json' },
      body: { name, origins: [origin] },
    });
    trackers[name] = (body as { id: string }).id;
  };
  /** Opens a customer's page with the tag of a tracker. */
  const openSite = async (name: string, headers: Readonly<Record<string, string>> = {}): Promise<void> => {
    const tag = `<script async src="${service.url}/tracking/a.js?tracker_id=${trackers[name]}" data-custom='{}'></script>`;
    // It stays open: what it sends is seen by the service.
    await (await context.newPage()).goto(site.page(`/${name}`, tag, headers));
  };
  const finds = async (name: string, text: string): Promise<void> => {
    const url = `${service.url}/dashboard/trackers/${trackers[name]}/install`;
    await expect
      .poll(async () => (await page.goto(url)) && page.locator('#install-check').textContent(), {
        timeout: WRITTEN_MS,
        interval: 500,
      })
      .toContain(text);
    await inspect(context, url, `install-check-${name}`);
  };

  beforeAll(async () => {
    [service, site, browser] = await Promise.all([
      startServiceOnDatabase({ env: { TRUSTED_PROXIES: '192.0.2.1/32' } }),
      startCustomerSite(),
      startBrowser(),
    ]);
    context = await browser.newContext();
    page = await context.newPage();
    const made = await service.cli('user', 'create', '--partner', 'demo', 'Ada', '--json');
    expect(made.code, made.stderr).toBe(0);
    const { password } = JSON.parse(made.stdout);
    await page.goto(`${service.url}/dashboard`);
    await fill(page, { 'User name': 'Ada', Password: password }, 'Log in');
    await fill(
      page,
      { 'Password until now': password, 'New password': PASSWORD, 'New password again': PASSWORD },
      'Change the password',
    );
    await makeTracker('origin', 'https://www.example.com');
    await makeTracker('policy', site.origin);
    await makeTracker('proxy', site.origin);
    await openSite('origin');
    await openSite('policy', {
      'content-security-policy': `script-src ${service.url}; connect-src 'none'`,
    });
    await openSite('proxy');
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await service?.remove();
  });

  it('names an origin that is not one of the websites', async () => {
    await finds('origin', `Visits arrive from origins that are not allowed: ${site.origin}.`);
  });

  it('names a content security policy that blocks the visit of a script that was loaded', async () => {
    await finds('policy', 'The script was loaded once, but no visit arrived.');
    expect(await page.getByLabel('Content security policy').textContent()).toBe(
      `script-src ${service.url}; connect-src ${service.url}`,
    );
  });

  it('names a proxy that hides the visitors', async () => {
    await finds('proxy', 'TRUSTED_PROXIES');
  });

  it('lets a person enable what was disabled by what the page says', async () => {
    const at = `${service.url}/dashboard/trackers/${trackers.proxy}`;
    await page.goto(`${at}/settings`);
    await press(page, 'Disable the website');
    await page.goto(`${at}/install`);
    expect(await page.locator('#install-check').textContent()).toContain('The website is disabled');
    await page.goto(`${at}/settings`);
    await press(page, 'Enable the website');
    await page.goto(`${at}/install`);
    expect(await page.locator('#install-check').textContent()).toContain('Receiving visits: 1');
  });
});
