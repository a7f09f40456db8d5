/** A real browser for tests: Debian's Chromium, or the one that `CHROMIUM` names. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { describe } from 'vitest';
import { reapProcess } from './reaped.ts';

const USUAL_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const program = [process.env.CHROMIUM ?? '', ...USUAL_PATHS].find((path) => existsSync(path));

/** A `describe` that skips its tests by name without Chromium. */
export const describeInBrowser = describe.skipIf(program === undefined);

const found = (): string => {
  if (program === undefined) throw new Error('there is no Chromium here');
  return program;
};

/** Without a window. Pages enter the back/forward cache as for a visitor. */
export const startBrowser = async (): Promise<Browser> =>
  await chromium.launch({
    executablePath: found(),
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });

export interface UnattendedBrowser {
  close(): Promise<void>;
}

/**
 * Opens a page without automation, because Chromium prerenders nothing under automation. The page must act by itself.
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
      // Its child processes may still be writing for a moment.
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
};

export interface Complaints {
  readonly errors: string[];
  readonly warnings: string[];
}

/** Collects from all pages of a context, including those that they open. */
export const complaintsOf = (context: BrowserContext): Complaints => {
  const complaints: Complaints = { errors: [], warnings: [] };
  context.on('weberror', (error) => complaints.errors.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'warning') complaints.warnings.push(message.text());
  });
  return complaints;
};
