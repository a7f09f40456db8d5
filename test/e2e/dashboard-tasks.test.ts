import { randomUUID } from 'node:crypto';
import { TOTP } from 'otpauth';
import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeIn, type Engine, type Person, personAt, startEngine } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

/**
 * The tasks that people come to the dashboard for, from login to result, in Firefox and, without scripts, in Chromium; with scripts
 * Chromium has dashboard.test.ts. They share one started product; each engine works for a partner of its own.
 */

const PASSWORD = 'three wise words';
const SITE = 'https://www.example.com';
const ENGINES: readonly (readonly [Engine, boolean])[] = [
  ['firefox', true],
  ['chromium', false],
];

let service: Service;
let receiver: Receiver;
/** The receiver's, to every request. */
let answer = 204;

beforeAll(async () => {
  receiver = await startReceiver({ answer: (_request, response) => void response.writeHead(answer).end() });
  service = await startServiceOnDatabase({
    env: {
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: String(receiver.port),
      RETRY_BASE_SECONDS: '600',
    },
  });
});
afterAll(async () => {
  await service?.remove();
  await receiver?.close();
});

async function command<T>(...args: string[]): Promise<T> {
  const done = await service.cli(...args, '--json');
  expect(done.code, done.stderr).toBe(0);
  return JSON.parse(done.stdout);
}

async function capture(trackerId: string, ip: string, custom: object = {}, origin = SITE): Promise<number> {
  const { status } = await service.call('POST', '/tracking/collect', {
    headers: { 'content-type': 'text/plain', origin, 'x-forwarded-for': ip },
    body: { tracker_id: trackerId, token: randomUUID(), visit_id: randomUUID(), custom },
  });
  return status;
}

/** Loads the page until its text has what is waited for. */
const shows = (person: Person, path: string, wanted: string): Promise<string> =>
  eventually(
    `${path} shows “${wanted}”`,
    async () => {
      await person.page.goto(`${service.url}/dashboard${path}`);
      return person.text();
    },
    (text) => text.includes(wanted),
    20_000,
    250,
  );

async function download(person: Person, path: string): Promise<string> {
  const cookies = await person.page.browserContext().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const got = await fetch(`${service.url}/dashboard${path}`, { headers: { cookie } });
  expect(got.status).toBe(200);
  return got.text();
}

describe.each(ENGINES)('in %s, with scripts: %s,', (engine, scripts) => {
  describeIn(engine)('a person', () => {
    const name = `${engine} ${scripts ? 'with' : 'without'} scripts`;
    let browser: Browser;
    let person: Person;
    let tracker = '';

    beforeAll(async () => {
      await command('partner', 'create', name);
      const made = await command<{ password: string }>('user', 'create', '--partner', name, `Ada of ${name}`);
      browser = await startEngine(engine);
      const page = await (await browser.createBrowserContext()).newPage();
      if (!scripts) await page.setJavaScriptEnabled(false);
      person = personAt(page, `${service.url}/dashboard`);
      await person.open('');
      await person.fill({ 'User name': `Ada of ${name}`, Password: made.password });
      await person.press('Log in');
      await person.fill({
        'Password until now': made.password,
        'New password': PASSWORD,
        'New password again': PASSWORD,
      });
      await person.press('Change the password');
    });
    afterAll(async () => {
      if (process.env.DOORPLATE_EFFORT === '1') process.stderr.write(`${name}: ${JSON.stringify(efforts)}\n`);
      await browser?.close();
    });

    /** Clicks and pages that each task took. */
    const efforts: Record<string, object> = {};
    const task = (title: string, work: () => Promise<void>) =>
      it(title, async () => {
        Object.assign(person.effort, { clicks: 0, pages: 0 });
        await person.open('');
        await work();
        efforts[title] = { ...person.effort };
      });

    task('gets from the first login to the first visit', async () => {
      expect(await person.text()).toContain('Get started');
      await person.fill({ 'Your website': 'www.example.com' });
      await person.press('Add the website');
      const snippet = await person.copyable('Snippet');
      tracker = /tracking\/a\.js\?tracker_id=([\w-]+)/.exec(snippet)?.[1] ?? '';
      expect(await person.text()).toContain('Waiting for the first visit');
      for (const ip of ['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9']) {
        expect(await capture(tracker, ip, { plan: 'pro' })).toBe(204);
      }
      await shows(person, '', 'See who visits your website Done');
      // With the login, the password and the copy button they are four.
      expect(person.effort.clicks).toBe(1);
      // What task 3 asks about: evidence is written within ten seconds.
      expect(await capture(tracker, '8.8.8.8', {}, 'https://shop.example')).toBe(403);
    });

    task('reveals three sessions, and knows before what it costs', async () => {
      await person.follow('Sessions');
      await person.tick('session_id', 3);
      await person.press('Reveal the selected sessions…');
      expect(await person.text()).toContain('at most 3 units');
      await person.press('Reveal 3 sessions, for at most 3 units');
      expect(await person.text()).toMatch(/3 sessions are revealed, for \d units?( so far)?\./);
      await shows(person, '/sessions?revealed=yes', '3 sessions.');
      // A pending reveal without a subscription completes when its receipt is read, as this page does.
      await eventually(
        'the three reveals are complete',
        async () => {
          await person.open('/sessions?revealed=yes');
          return person.text();
        },
        (text) => !text.includes('Pending'),
        20_000,
        500,
      );
    });

    task('takes the companies of this week along as CSV', async () => {
      await shows(person, `/companies?tracker_id=${tracker}`, 'Google');
      const csv = await download(person, `/companies.csv?tracker_id=${tracker}`);
      expect(csv).toMatch(
        /^company,website,industry,country,sessions,first_seen_at,last_seen_at,websites,city,region\r\n/,
      );
      expect(csv).toContain('Google');
      expect(csv).toContain('www.example.com');
    });

    task('looks up an address and finds the curl for it', async () => {
      await person.follow('Keys');
      await person.follow('Create a key');
      await person.fill({ Name: 'server', 'Your password': PASSWORD });
      await person.press('Create the key');
      await person.follow('Look up');
      await person.fill({ 'IP address': '8.8.8.8' });
      await person.press('Look up');
      await shows(person, person.page.url().replace(/^.*\/dashboard/, ''), 'Google');
      expect(JSON.parse(await person.copyable('JSON answer'))).toMatchObject({
        ip: '8.8.8.8',
        status: 'complete',
      });
      expect(await person.copyable('curl command')).toContain('"ip":"8.8.8.8"');
    });

    task('sees which key uses up the allowance', async () => {
      await person.follow('Usage and billing');
      expect(await person.text()).toMatch(/New enrichments by key\s*server\s*\d/);
    });

    task('proves the bill of a month', async () => {
      const month = new Date().toISOString().slice(0, 7);
      await person.open(`/billing/${month}`);
      expect(await person.copyable('Commands that prove the bill')).toContain(`verify --month ${month}`);
      const lines = (await download(person, `/billing/${month}/ledger.jsonl`)).trim().split('\n');
      expect(lines.map((line) => JSON.parse(line).number)).toEqual([0, 1, 2]);
    });

    task('finds out why the pixel shows nothing on a page', async () => {
      await person.follow('Websites');
      await person.follow('www.example.com');
      await shows(
        person,
        `/trackers/${tracker}`,
        'Visits arrive from origins that are not allowed: https://shop.example',
      );
      await person.follow('Add to the website…');
      await person.press('Add the origin');
      expect(await person.text()).toContain('https://shop.example');
      expect(await capture(tracker, '8.8.8.8', {}, 'https://shop.example')).toBe(204);
    });

    task('finds what failed while a receiver was down, retries it and sees it done', async () => {
      await person.follow('Webhooks');
      await person.follow('Add an endpoint');
      await person.fill({ Name: 'My server', URL: `http://127.0.0.1:${receiver.port}/` });
      await person.press('Add the endpoint');
      expect(await person.copyable('Signing secret of “My server”')).toMatch(/^whsec_/);
      await person.follow('I have kept it');
      await person.follow('Testing');
      answer = 500;
      await person.press('Send a test');
      await shows(person, '/webhooks', 'Failing');
      await person.follow('My server');
      expect(await person.text()).toContain('HTTP 500');
      answer = 204;
      await person.follow('Retry what failed or waits…');
      await person.press('Count');
      await person.press('Retry 1 delivery');
      await shows(person, person.page.url().replace(/^.*\/dashboard/, ''), 'Done: 1 delivery of 1 arrived.');
    });

    task('rotates a signing secret while both are valid', async () => {
      await person.follow('Webhooks');
      await person.follow('My server');
      await person.follow('Rotate the secret…');
      await person.press('Rotate the secret');
      expect(await person.text()).toContain('whsec_');
      const rotation = new URL(person.page.url()).pathname.replace('/dashboard', '');
      await person.tick('kept', 1);
      await person.press('Send a test');
      await shows(person, rotation, 'was accepted with the new secret');
      expect(receiver.requests.at(-1)?.headers['webhook-signature']).toMatch(/^v1,\S+$/);
      await shows(person, '/webhooks', 'Healthy');
    });

    task('gives a colleague read-only access, who sets up a second factor', async () => {
      await person.follow('Settings');
      await person.follow('Team');
      await person.follow('Invite a colleague');
      await person.fill({
        Role: 'Read-only: sees everything but secrets, changes nothing',
        'For whom': 'Ben, finance',
        'Your password': PASSWORD,
      });
      await person.press('Make the link');
      const link = await person.copyable('Link');

      const page = await (await browser.createBrowserContext()).newPage();
      if (!scripts) await page.setJavaScriptEnabled(false);
      const colleague = personAt(page, `${service.url}/dashboard`);
      await page.goto(link);
      await colleague.fill({ 'User name': `Ben of ${name}`, Password: PASSWORD, 'Password again': PASSWORD });
      await colleague.press('Join and log in');
      await colleague.follow('Settings');
      await colleague.follow('Set up a second factor');
      const totp = new TOTP({ secret: (await colleague.copyable('Secret')).replaceAll(' ', '') });
      await colleague.fill({ Code: totp.generate(), 'Your password': PASSWORD });
      await colleague.press('Turn on the second factor');
      const [recoveryCode = ''] = (await colleague.copyable('Recovery codes')).split('\n');
      await colleague.press('Log out');
      await colleague.fill({ 'User name': `Ben of ${name}`, Password: PASSWORD });
      await colleague.press('Log in');
      expect(await colleague.title()).toBe('Enter your code');
      await colleague.fill({ Code: recoveryCode });
      await colleague.press('Log in');
      await colleague.open('/keys');
      expect(await colleague.text()).toContain('Owners of the team create and change keys');
      await colleague.open('/trackers');
      expect(await colleague.text()).not.toContain('Add a website');
      await page.close();
    });
  });
});
