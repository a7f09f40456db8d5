/** The dashboard in Chromium, as a person works with it. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** The folder for screenshots, if they are wanted. */
const SCREENSHOTS = process.env.DOORPLATE_SCREENSHOTS;

const VARIANTS = [
  // In the dark the colours alone are others, and on a phone not even those.
  { name: 'light', rules: [], colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { name: 'dark', rules: ['color-contrast'], colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  { name: 'phone', rules: null, colorScheme: 'light', viewport: { width: 390, height: 844 } },
] as const;

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** The violations of these rules, or of all, that axe-core rates as serious or worse on a page. */
const seriousFindings = async (page: Page, rules: readonly string[]): Promise<string[]> => {
  const options = { resultTypes: ['violations'], ...(rules.length > 0 && { runOnly: rules }) };
  const violations = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as readonly Finding[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
};

/** Opens a page in a second tab, in light, dark and narrow form, and checks what every page must fulfil. */
export const inspect = async (context: BrowserContext, url: string, name: string) => {
  const page = await context.newPage();
  // A page that looks for news by itself would be loaded anew while it is inspected.
  await page.addInitScript('window.setInterval = () => 0');
  const said: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  const answer = await page.goto(url);
  expect(answer?.status(), url).toBe(200);
  expect(await page.locator('h1').count(), name).toBe(1);
  await page.evaluate(AXE);
  for (const { name: variant, rules, colorScheme, viewport } of VARIANTS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    if (rules !== null) expect(await seriousFindings(page, rules), `${name}, ${variant}`).toEqual([]);
    // Nothing is cut off: wide parts have their own scroll bar.
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width, `${name} is no wider than the screen`).toBeLessThanOrEqual(viewport.width);
    if (SCREENSHOTS !== undefined) {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${variant}.png`), fullPage: true });
    }
  }
  expect(said, name).toEqual([]);
  await page.close();
};

/** Fills a form of the page and submits it with its button. */
export const fill = async (
  page: Page,
  values: Readonly<Record<string, string>>,
  button: string,
): Promise<void> => {
  for (const [label, value] of Object.entries(values))
    await page.getByLabel(label, { exact: true }).fill(value);
  await press(page, button);
};

/** Presses a button and waits for the next page. */
export const press = async (page: Page, button: string): Promise<void> => {
  const loaded = page.waitForEvent('load');
  await page.getByRole('button', { name: button, exact: true }).click();
  await loaded;
};

/** Follows a link and waits for its page. */
export const follow = async (page: Page, link: string): Promise<void> => {
  const loaded = page.waitForEvent('load');
  await page.getByRole('link', { name: link, exact: true }).click();
  await loaded;
};

export const titleOf = (page: Page): Promise<string | null> => page.locator('h1').textContent();

/** The message about the last change. */
export const flashMessageOf = (page: Page): Promise<string | null> =>
  page.locator('[role=status]').first().textContent();

/** A text that can be copied, by its label. */
export const copied = (page: Page, label: string): Promise<string | null> =>
  page.getByLabel(label, { exact: true }).textContent();
