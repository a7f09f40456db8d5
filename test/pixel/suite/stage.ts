import { randomUUID } from 'node:crypto';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { type Complaints, complaintsOf, startBrowser } from '../../support/browser.ts';
import { type CustomerSite, startCustomerSite } from '../../support/customer-site.ts';
import { eventually } from '../../support/eventually.ts';
import { type Collector, startCollector, type Visit } from './collector.ts';

/** A visitor with a separate browser profile, a tracker, and the requests that the service received. */
export interface Scene extends Complaints {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly site: CustomerSite;
  readonly collector: Collector;
  readonly tracker: string;
  /** Where the tag loads the script from. */
  readonly src: string;
  /** The tag that the tracker's owner installs; '' leaves `data-custom` out. */
  tag(custom?: string): string;
  /** Opens a page that has only the tag. */
  open(path?: string): Promise<void>;
  /** Waits for the given number of visits and returns them. */
  visits(count: number): Promise<Visit[]>;
  /** Sends a marker after them, so that none is in flight; returns the visits. */
  visitsSoFar(): Promise<Visit[]>;
  /** Waits until the page has received the responses of this many attempts since it was loaded. */
  answered(count: number): Promise<void>;
}

const COUNT_ANSWERS = `{
  const { fetch } = window;
  window.answers = 0;
  window.fetch = (...request) => {
    const answer = fetch(...request);
    const count = () => { window.answers += 1; };
    if (!String(request[0]).endsWith('/later')) answer.then(count, count);
    return answer;
  };
}`;

/** Returns a new stage for a test. */
export type RunScene = (act: (scene: Scene) => Promise<void>) => Promise<void>;

/** Starts one browser for a test file, and ends it. */
export const setStage = (): RunScene => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser.close());

  return async (act) => {
    const [site, collector, context] = await Promise.all([
      startCustomerSite(),
      startCollector(),
      browser.newContext(),
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
  await context.addInitScript(COUNT_ANSWERS);
  const page = await context.newPage();
  const tracker = randomUUID();
  const src = `${collector.origin}/tracking/a.js?tracker_id=${tracker}`;
  const tag = (custom = '{}') =>
    `<script async src="${src}"${custom === '' ? '' : ` data-custom='${custom}'`}></script>`;
  const visits = (count: number) =>
    eventually(`${count} visits`, collector.visits, ({ length }) => length >= count);
  return {
    ...complaintsOf(context),
    context,
    page,
    site,
    collector,
    tracker,
    src,
    tag,
    visits,
    open: async (path = '/') => {
      await page.goto(site.page(path, tag()));
    },
    visitsSoFar: async () => {
      await page.evaluate(`fetch('${collector.origin}/later', { mode: 'no-cors' })`);
      return collector.visits();
    },
    answered: async (count) => {
      await page.waitForFunction(`answers === ${count}`);
    },
  };
};
