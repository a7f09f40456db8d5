/** A real browser for tests: Debian's Chromium, or the one that `CHROMIUM` names. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { describe } from 'vitest';
import { reapProcess } from './reaped.ts';

const USUAL_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const program = [process.env.CHROMIUM ?? '', ...USUAL_PATHS].find((path) => existsSync(path));

/** A `describe` whose tests are skipped, each by its name, where there is no Chromium. */
export const describeInBrowser = describe.skipIf(program === undefined);

const found = (): string => {
  if (program === undefined) throw new Error('there is no Chromium here');
  return program;
};

/** Without a window. Pages go into the back/forward cache as they do with a visitor. */
export const startBrowser = async (): Promise<Browser> =>
  await chromium.launch({
    executablePath: found(),
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });

export interface UnattendedBrowser {
  close(): Promise<void>;
}

/**
 * Opens a page that nobody steers, for what Chromium does not do where somebody does: it prerenders nothing then. The
 * page has to go on by itself.
 */
export const openUnattended = (url: string): UnattendedBrowser => {
  const profile = mkdtempSync(join(tmpdir(), 'doorplate-chromium-'));
  const child = spawn(
    found(),
    [
      '--headless',
      '--no-sandbox',
      '--no-first-run',
      '--disable-sync',
      '--disable-component-update',
      `--user-data-dir=${profile}`,
      url,
    ],
    { stdio: 'ignore' },
  );
  if (child.pid !== undefined) reapProcess(child.pid);
  const ended = once(child, 'close');
  return {
    close: async () => {
      child.kill('SIGTERM');
      await ended;
      // What it started may still be writing for a moment.
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
};

/** What went wrong in a page or was written to its console. */
export interface Complaints {
  /** Uncaught errors, unhandled rejections among them. */
  readonly errors: string[];
  readonly warnings: string[];
}

/** Collects from all pages of a context, those included that they open. */
export const complaintsOf = (context: BrowserContext): Complaints => {
  const complaints: Complaints = { errors: [], warnings: [] };
  context.on('weberror', (error) => complaints.errors.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'warning') complaints.warnings.push(message.text());
  });
  return complaints;
};

/** Runs in the page and waits for nothing that the page does afterwards. */
export const inPage = (page: Page, script: string): Promise<unknown> =>
  page.evaluate(`(() => {${script}})()`);
