/** Takes the pictures of README and web/dashboard/README.md from a fresh demo: `node bench/pictures.ts`, with Chromium. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { makeDataFolder } from '../cli/installation/data-folder.ts';
import { runDoorplate } from '../cli/installation/serving.ts';
import { startBrowser } from '../test/support/browser.ts';
import { eventually } from '../test/support/eventually.ts';

const FOLDER = fileURLToPath(new URL('../docs/screenshots', import.meta.url));
const READY_MS = 180_000;
const SIZE = { width: 1280, height: 800 };

/** What is shown: the file's name, and how a page gets there from Home. */
const PICTURES: readonly (readonly [name: string, open: (page: Page) => Promise<unknown>])[] = [
  ['overview', (page) => page.goto(`${page.url().split('?')[0]}?period=30d`)],
  ['companies', (page) => page.getByRole('link', { name: 'Companies', exact: true }).first().click()],
  [
    'webhook',
    async (page) => {
      await page.getByRole('link', { name: 'Webhooks', exact: true }).click();
      await page.getByRole('link', { name: 'Sales chat' }).click();
    },
  ],
];

const cwd = makeDataFolder();
const demo = runDoorplate(['demo'], {}, { cwd });
try {
  const isReady = () => demo.stdout().includes('The demo is ready') || demo.child.exitCode !== null;
  await eventually('the demo is ready', isReady, Boolean, READY_MS);
  const shown = (name: string) => new RegExp(`^ +${name} +(\\S+)`, 'm').exec(demo.stdout())?.[1] ?? '';
  const browser = await startBrowser();
  mkdirSync(FOLDER, { recursive: true });
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: SIZE, colorScheme });
    await page.goto(shown('dashboard'));
    await page.getByLabel('User name').fill(shown('login'));
    await page.getByLabel('Password').fill(shown('password'));
    await page.getByRole('button', { name: 'Log in' }).click();
    for (const [name, open] of PICTURES) {
      await page.goto(shown('dashboard'));
      await open(page);
      await page.waitForLoadState('networkidle');
      await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
    }
  }
  await browser.close();
} finally {
  await runDoorplate(['demo', '--remove'], {}, { cwd }).ended;
}
