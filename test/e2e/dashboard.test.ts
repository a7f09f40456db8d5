import { randomUUID } from 'node:crypto';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { complaintsOf, describeInBrowser, startBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';
import { copied, fill, flashMessageOf, follow, inspect, press, titleOf } from './dashboard-pages.ts';

const PASSWORD = 'three wise words';
const SITE = 'https://www.example.com';

describeInBrowser('the dashboard in Chromium, in the started product', () => {
  let service: Service;
  let receiver: Receiver;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: ReturnType<typeof complaintsOf>;
  let answer = 204;
  let first: { name: string; password: string; partner_id: string };
  let tracker = '';
  let session = '';
  let receipt = '';
  let webhook = '';
  let domain = '';

  beforeAll(async () => {
    receiver = await startReceiver({ answer: (_request, response) => void response.writeHead(answer).end() });
    service = await startServiceOnDatabase({
      env: {
        WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32',
        WEBHOOK_ALLOW_HTTP: '1',
        // Custom domains are CNAME records, which point at a name.
        PUBLIC_URL: 'http://doorplate.example',
        PUBLIC_HOSTS: 'localhost',
        WEBHOOK_ALLOW_PORTS: String(receiver.port),
        RETRY_BASE_SECONDS: '600',
      },
    });
    const made = await service.cli('user', 'create', '--partner', 'demo', 'Ada', '--json');
    expect(made.code, made.stderr).toBe(0);
    first = JSON.parse(made.stdout);
    browser = await startBrowser();
    context = await browser.newContext({
      permissions: ['clipboard-read', 'clipboard-write'],
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
    });
    complaints = complaintsOf(context);
    context.on('console', (message) => {
      // Browsers log expected 4xx responses as errors.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
        complaints.errors.push(message.text());
      }
    });
    page = await context.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.remove();
    await receiver?.close();
  });

  const base = () => service.url.replace('127.0.0.1', 'localhost');
  const open = (path: string) => page.goto(`${base()}/dashboard${path}`);
  const looksRight = (path: string, name: string) => inspect(context, `${base()}/dashboard${path}`, name);
  const capture = async (ip: string, custom: object): Promise<void> => {
    const captured = await fetch(`${base()}/tracking/collect`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain', origin: SITE, 'x-forwarded-for': ip },
      body: JSON.stringify({ tracker_id: tracker, token: randomUUID(), visit_id: randomUUID(), custom }),
    });
    expect(captured.status).toBe(204);
  };

  it('lets its user log in with the first password, which must be changed', async () => {
    await open('/keys');
    expect(await titleOf(page)).toBe('Log in');
    await looksRight('/login', 'login');
    const answer = page.getByRole('alert');
    // The first password that a busy machine checks may take too long.
    do await fill(page, { 'User name': 'ada', Password: 'not the password' }, 'Log in');
    while ((await answer.textContent())?.includes('retry later'));
    expect(await answer.textContent()).toContain('wrong');
    await fill(page, { 'User name': 'ada', Password: first.password }, 'Log in');
    expect(await titleOf(page)).toBe('Choose your password');
    const change = {
      'Password until now': first.password,
      'New password': PASSWORD,
      'New password again': PASSWORD,
    };
    await fill(page, change, 'Change the password');
    expect(await flashMessageOf(page)).toContain('Your password is changed');
    await looksRight('/password', 'password');
  });

  it('shows the next step on empty pages', async () => {
    const empty = [
      ['/companies', 'No companies match'],
      ['/sessions', 'No sessions yet'],
      ['/trackers', 'No websites yet'],
      ['/domains', 'No domains yet'],
      ['/webhooks', 'No endpoints yet'],
      ['/billing', 'No units yet'],
    ] as const;
    for (const [path, title] of empty) {
      await open(path);
      expect(await page.locator('.empty h2').textContent(), path).toBe(title);
    }
  });

  it('adds a website, with a snippet to copy and a check of its installation', async () => {
    await open('/trackers');
    await follow(page, 'Add a website');
    await fill(
      page,
      { Name: 'A website', Origins: 'http://plain.example', 'Your reference': 'customer-42' },
      'Add the website',
    );
    expect(await page.getByRole('alert').textContent()).toContain('invalid_origin');
    await fill(page, { Origins: SITE }, 'Add the website');
    expect(await titleOf(page)).toBe('A website');
    tracker = /trackers\/([\w-]+)/.exec(page.url())?.[1] ?? '';
    expect(await copied(page, 'Snippet')).toContain(`/tracking/a.js?tracker_id=${tracker}`);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain(tracker);
    expect(await page.locator('main').textContent()).toContain('Waiting for the first visit');
    await looksRight(`/trackers/${tracker}`, 'tracker-new');
    await capture('8.8.8.8', { plan: 'pro' });
    await capture('1.1.1.1', { plan: 'free' });
    // The part of the page that waits exchanges itself.
    await page.locator('figcaption', { hasText: 'Sessions a day' }).waitFor({ timeout: 30_000 });
    await follow(page, 'Install');
    // So does this one: what a process saw of the pixel is written every few seconds.
    await page.locator('#install-check', { hasText: 'Receiving visits: 2 in the last 24 hours' }).waitFor();
  });

  it('shows sessions and reveals the company for one unit', async () => {
    await open(`/sessions?tracker_id=${tracker}`);
    const row = page.locator('tbody tr', { hasText: 'plan: pro' });
    await row.getByRole('link', { name: 'Not revealed' }).click();
    await page.waitForURL(/sessions\/[\w-]{36}/);
    session = page.url().split('/').at(-1) ?? '';
    await follow(page, 'Reveal the company…');
    await looksRight(`/sessions/${session}/reveal`, 'reveal');
    await press(page, 'Reveal, for one unit');
    receipt = /reveals\/([\w-]+)/.exec(page.url())?.[1] ?? '';
    const reading = async () => {
      await open(`/reveals/${receipt}`);
      return (await page.locator('main').textContent()) ?? '';
    };
    await eventually('the receipt has the company', reading, (text) => text.includes('Google'), 10_000, 250);
    await open(`/sessions/${session}`);
    expect(await page.locator('main').textContent()).toContain('Google');
  });

  it('keeps a selected text of the live list, and says when the list stops looking', async () => {
    const watching = await context.newPage();
    await watching.clock.install();
    await watching.goto(`${base()}/dashboard/sessions`);
    const cell = watching.locator('#sessions tbody td', { hasText: 'Google' }).first();
    await cell.selectText();
    await capture('1.1.1.1', { plan: 'later' });
    await watching.clock.runFor(20_000);
    expect(await watching.evaluate('getSelection().toString()')).toContain('Google');
    await watching.evaluate('getSelection().removeAllRanges()');
    await watching.clock.runFor(5_000);
    await watching.getByText('plan: later').waitFor();
    await watching.clock.runFor(600_000);
    await watching.getByText('no longer looks for news by itself').waitFor();
    expect(await watching.getByText('looks for new sessions every five seconds').isVisible()).toBe(false);
    await watching.close();
  });

  it('creates a key that works, shows it once, and revokes it', async () => {
    await open('/keys');
    await follow(page, 'Create a key');
    await fill(page, { Name: 'from the browser', 'Your password': PASSWORD }, 'Create the key');
    const key = (await copied(page, 'Key “from the browser”')) ?? '';
    const usage = async () => (await service.call('GET', '/v1/usage', { key })).status;
    expect(await usage()).toBe(200);
    await follow(page, 'I have kept it');
    expect(await page.content()).not.toContain(key);
    await follow(page, 'from the browser');
    await looksRight(new URL(page.url()).pathname.replace('/dashboard', ''), 'key');
    await fill(page, { 'Requests a second': '5', 'Your password': PASSWORD }, 'Change the limits');
    expect(await flashMessageOf(page)).toContain('The limits are changed');
    await follow(page, 'from the browser');
    await follow(page, 'Revoke the key…');
    await looksRight(new URL(page.url()).pathname.replace('/dashboard', ''), 'key-revoke');
    await fill(page, { 'Your password': PASSWORD }, 'Revoke the key');
    expect(await flashMessageOf(page)).toContain('The key is revoked');
    await eventually('it is refused', usage, (status) => status === 401);
  });

  it('creates an endpoint, tests it, retries, rotates its secret, pauses and deletes it', async () => {
    await open('/webhooks');
    await follow(page, 'Add an endpoint');
    await fill(page, { Name: 'My server', URL: `http://127.0.0.1:${receiver.port}/` }, 'Add the endpoint');
    expect(await copied(page, 'Signing secret of “My server”')).toMatch(/^whsec_/);
    await follow(page, 'I have kept it');
    webhook = page.url().split('/').at(-1) ?? '';
    await follow(page, 'Testing');
    await press(page, 'Send a test');
    const delivered = async () => {
      await open(`/webhooks/${webhook}/deliveries`);
      return (await page.locator('tbody').textContent()) ?? '';
    };
    await eventually('the test is delivered', delivered, (text) => text.includes('delivered'), 10_000, 250);
    expect(receiver.requests).toHaveLength(1);
    await page.locator('tbody a').first().click();
    await page.waitForURL(/deliveries\/[\w-]{36}/);
    await looksRight(new URL(page.url()).pathname.replace('/dashboard', ''), 'delivery');
    await press(page, 'Deliver once more');
    await eventually(
      'it is delivered again',
      async () => receiver.requests.length,
      (n) => n === 2,
    );
    answer = 500;
    await open(`/webhooks/${webhook}/testing`);
    await press(page, 'Send a test');
    await eventually('it has failed once', delivered, (text) => text.includes('HTTP 500'), 10_000, 250);
    await open(`/webhooks/${webhook}/rotate`);
    await looksRight(`/webhooks/${webhook}/rotate`, 'webhook-rotate');
    await press(page, 'Rotate the secret');
    expect(await copied(page, 'The new secret')).toMatch(/^whsec_/);
    await follow(page, 'Done: to the endpoint');
    await open(`/webhooks/${webhook}/settings`);
    await press(page, 'Pause the endpoint');
    expect(await flashMessageOf(page)).toContain('paused');
    await press(page, 'Enable the endpoint');
    await fill(page, { Name: 'My servers' }, 'Save');
    expect(await titleOf(page)).toBe('My servers');
  });

  it('adds a domain and removes it', async () => {
    await open(`/domains?tracker_id=${tracker}`);
    await follow(page, 'Add a domain');
    await fill(page, { 'Host name': 'visits.customer.example' }, 'Add the domain');
    expect(await titleOf(page)).toBe('visits.customer.example');
    expect(await copied(page, 'DNS record')).toMatch(/^visits\.customer\.example\. CNAME /);
    domain = page
      .url()
      .replace(/^.*\/dashboard/, '')
      .replace(/\?.*$/, '');
  });

  it('proves the billed units', async () => {
    await open('/billing');
    await press(page, 'Audit now');
    const verdict = async () => {
      await open('/billing');
      return (await page.locator('main').textContent()) ?? '';
    };
    await eventually('the verdict is there', verdict, (text) => text.includes('No differences'), 20_000, 250);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download as CSV' }).click(),
    ]);
    const csv = Buffer.concat(await (await file.createReadStream()).toArray()).toString();
    expect(csv).toMatch(/^\uFEFFmonth,completed_reveals,units\r\n\d{4}-\d\d,1,1\r\n$/);
  });

  it('draws the calls of the keys', async () => {
    const key = service.demoKey();
    for (const ip of ['8.8.8.8', '8.8.8.8', '1.1.1.1', 'no address']) {
      await service.call('POST', '/v1/lookup', { key, body: { ip } });
    }
    await open('');
    await follow(page, 'Lookups');
    const chart = page.locator('figure', { hasText: 'Lookups a day, all keys' });
    await chart.getByText('Show the figures').click();
    const today = await chart.locator('tbody tr').last().locator('td').allTextContents();
    // The second request for an address is a poll if it is still being enriched.
    expect([3, 4]).toContain(today.slice(1).reduce((sum, cell) => sum + Number(cell), 0));
  });

  it.each([
    ['overview', () => ''],
    ['companies', () => '/companies'],
    ['company', () => '/company?name=Google+LLC'],
    ['lookup', () => '/lookup?ip=8.8.8.8'],
    ['usage', () => '/usage'],
    ['bill', () => `/billing/${new Date().toISOString().slice(0, 7)}`],
    ['sessions', () => '/sessions'],
    ['session', () => `/sessions/${session}`],
    ['receipt', () => `/reveals/${receipt}`],
    ['trackers', () => '/trackers'],
    ['tracker', () => `/trackers/${tracker}`],
    ['tracker-install', () => `/trackers/${tracker}/install`],
    ['tracker-settings', () => `/trackers/${tracker}/settings`],
    ['tracker-add', () => '/trackers/new'],
    ['keys', () => '/keys'],
    ['key-create', () => '/keys/new'],
    ['webhooks', () => '/webhooks'],
    ['webhook', () => `/webhooks/${webhook}`],
    ['webhook-testing', () => `/webhooks/${webhook}/testing`],
    ['webhook-settings', () => `/webhooks/${webhook}/settings`],
    ['webhook-add', () => '/webhooks/new'],
    ['deliveries', () => `/webhooks/${webhook}/deliveries`],
    ['domains', () => '/domains'],
    ['domain', () => domain],
    ['domain-add', () => '/domains/new'],
    ['billing', () => '/billing'],
    ['account', () => '/account'],
    ['second-factor', () => '/account/second-factor'],
    ['team', () => '/team'],
    ['invite', () => '/team/invite'],
    ['activity', () => '/activity'],
  ])('is accessible and fits the screen in light, dark and on a phone: %s', async (name, path) => {
    await looksRight(path(), name);
  });

  it('weighs less than 60 KB beside its type face at first sight, in five requests to its own host', async () => {
    const visit = await context.newPage();
    const sizes: Promise<number>[] = [];
    const hosts = new Set<string>();
    visit.on('response', (response) => {
      const size = response.body().then(({ length }) => length);
      if (response.url().endsWith('.woff2')) sizes.push(size.then((bytes) => (bytes < 40_000 ? 0 : bytes)));
      else if (!response.url().startsWith('data:')) sizes.push(size);
      hosts.add(new URL(response.url()).host);
    });
    await visit.goto(`${base()}/dashboard`, { waitUntil: 'networkidle' });
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeLessThan(60_000);
    expect(sizes.length).toBeLessThanOrEqual(5);
    expect([...hosts].filter((host) => host !== '')).toEqual([new URL(base()).host]);
    await visit.close();
  });

  it('names the source of countries wherever it shows one', async () => {
    for (const path of ['/sessions', `/sessions/${session}`, `/reveals/${receipt}`]) {
      await open(path);
      expect(await page.locator('footer').textContent(), path).toContain('DB-IP');
    }
  });

  it('works by keyboard alone, with a skip link past the navigation', async () => {
    await open('/keys/new');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByLabel('Name', { exact: true }).focus();
    await page.keyboard.type('by keyboard');
    await page.getByLabel('Your password', { exact: true }).focus();
    await page.keyboard.type(PASSWORD);
    const loaded = page.waitForEvent('load');
    await page.keyboard.press('Enter');
    await loaded;
    expect(await titleOf(page)).toBe('Your new key');
  });

  it('revokes and deletes only after a confirmation', async () => {
    await open(`${domain}/delete`);
    await press(page, 'Give the domain up');
    expect(await flashMessageOf(page)).toContain('given up');
    await open(`/webhooks/${webhook}/delete`);
    await press(page, 'Delete the endpoint');
    expect(await flashMessageOf(page)).toContain('deleted');
    await open(`/trackers/${tracker}/settings`);
    await press(page, 'Disable the website');
    expect(await flashMessageOf(page)).toContain('disabled');
    await press(page, 'Enable the website');
    await press(page, 'Disable the website');
    await follow(page, 'Delete the website…');
    await looksRight(`/trackers/${tracker}/delete`, 'tracker-delete');
    await press(page, 'Delete the website');
    expect(await flashMessageOf(page)).toContain('deleted');
    await open('/trackers');
    expect(await page.locator('.empty').count()).toBe(1);
  });

  it('ends every login of its user and leaves the browser console empty', async () => {
    await open('/account');
    await press(page, 'Log out everywhere');
    expect(await titleOf(page)).toBe('Log in');
    await open('/keys');
    expect(await titleOf(page)).toBe('Log in');
    expect([...complaints.errors, ...complaints.warnings]).toEqual([]);
  });
});
