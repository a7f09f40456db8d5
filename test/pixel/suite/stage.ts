import { randomUUID } from 'node:crypto';
import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import { afterAll, beforeAll } from 'vitest';
import { type CustomerSite, startCustomerSite } from '../../support/customer-site.ts';
import { type Engine, startEngine } from '../../support/engines.ts';
import { eventually } from '../../support/eventually.ts';
import { type Collector, startCollector, type Visit } from './collector.ts';

/** A visitor with a separate browser profile, a tracker, and the requests that the service received. */
export interface Scene {
  readonly page: Page;
  readonly site: CustomerSite;
  readonly collector: Collector;
  readonly tracker: string;
  /** Where the tag loads the script from. */
  readonly src: string;
  /** Uncaught errors of the page, and what it wrote to the console as an error. */
  readonly errors: string[];
  readonly warnings: string[];
  /** The URLs that the page has requested. */
  readonly requested: string[];
  /** The tag that the tracker's owner installs; '' leaves `data-custom` out. */
  tag(custom?: string): string;
  /** Opens a page that has only the tag. */
  open(path?: string): Promise<void>;
  /** Waits until an expression is true in the page. */
  becomes(expression: string): Promise<void>;
  /** Waits for the given number of visits and returns them. */
  visits(count: number): Promise<Visit[]>;
  /** Sends a marker after them, so that none is in flight; returns the visits. */
  visitsSoFar(): Promise<Visit[]>;
  /** Waits until the page has received the responses of this many attempts since it was loaded. */
  answered(count: number): Promise<void>;
  /** Stops the clock and the timers of the pages that are loaded from now on. */
  freezeTime(): Promise<void>;
  /** Sets the stopped clock forward and runs the timers that are due. */
  pass(ms: number): Promise<void>;
}

/** Longer than the script waits before it retries, or for the reason of a step. */
export const LATER_MS = 5_000;

/** `attempts`: the bodies of the page's requests. `answers`: how many of them have ended. */
const RECORD_REQUESTS = `
  const { fetch } = window;
  window.answers = 0;
  window.attempts = [];
  window.fetch = (...request) => {
    const answer = fetch(...request);
    const count = () => { window.answers += 1; };
    if (!String(request[0]).endsWith('/later')) {
      attempts.push(request[1]?.body);
      answer.then(count, count);
    }
    return answer;
  };`;

const FREEZE_TIME = `
  let now = Date.now();
  const timers = [];
  Date.now = () => now;
  window.setTimeout = (run, ms) => timers.push({ run, due: now + ms });
  window.clearTimeout = (id) => { delete timers[id - 1]; };
  window.pass = (ms) => {
    now += ms;
    timers.forEach(({ run, due }, index) => {
      if (due > now) return;
      delete timers[index];
      run();
    });
  };`;

/** What Firefox itself reports of a request that a policy or the network stops. */
const BLOCKED = /^Error: (Content-Security-Policy|Cross-Origin Request Blocked):/;

/** Runs in the page and does not wait for later effects. */
export const inPage = (page: Page, script: string): Promise<unknown> =>
  page.evaluate(`(() => {${script}})()`);

/** Returns a new stage for a test. */
export type RunScene = (act: (scene: Scene) => Promise<void>) => Promise<void>;

/** Starts one browser for the tests of a `describe`, and ends it. */
export const setStage = (engine: Engine, preferences?: Readonly<Record<string, unknown>>): RunScene => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startEngine(engine, preferences);
  });
  afterAll(() => browser?.close());

  return async (act) => {
    const [site, collector, context] = await Promise.all([
      startCustomerSite(),
      startCollector(),
      browser.createBrowserContext(),
    ]);
    try {
      await act(await makeScene(site, collector, context));
    } finally {
      await context.close();
      await Promise.all([site.close(), collector.close()]);
    }
  };
};

const makeScene = async (
  site: CustomerSite,
  collector: Collector,
  context: BrowserContext,
): Promise<Scene> => {
  const page = await context.newPage();
  await page.evaluateOnNewDocument(RECORD_REQUESTS);
  const errors: string[] = [];
  const warnings: string[] = [];
  const requested: string[] = [];
  page.on('pageerror', (error) => {
    if (!BLOCKED.test(String(error))) errors.push(String(error));
  });
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
    if (message.type() === 'warn') warnings.push(message.text());
  });
  page.on('request', (request) => void requested.push(request.url()));

  const tracker = randomUUID();
  const src = `${collector.origin}/tracking/a.js?tracker_id=${tracker}`;
  const tag = (custom = '{}') =>
    `<script async src="${src}"${custom === '' ? '' : ` data-custom='${custom}'`}></script>`;
  const becomes = async (expression: string) => {
    await eventually(expression, () => page.evaluate(expression), Boolean);
  };
  const visits = (count: number) =>
    eventually(`${count} visits`, collector.visits, ({ length }) => length >= count);
  return {
    page,
    site,
    collector,
    tracker,
    src,
    errors,
    warnings,
    requested,
    tag,
    open: async (path = '/') => {
      await page.goto(site.page(path, tag()));
    },
    becomes,
    visits,
    visitsSoFar: async () => {
      await page.evaluate(`fetch('${collector.origin}/later', { mode: 'no-cors' }).then(() => {})`);
      return collector.visits();
    },
    answered: (count) => becomes(`answers === ${count}`),
    freezeTime: async () => {
      await page.evaluateOnNewDocument(FREEZE_TIME);
    },
    pass: async (ms) => {
      await inPage(page, `pass(${ms})`);
    },
  };
};
