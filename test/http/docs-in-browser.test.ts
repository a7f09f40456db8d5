import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { documentedRoutes } from '../../bin/api.ts';
import { docsRoutes } from '../../http/docs/docs-page.ts';
import { FAVICON } from '../../http/docs/mark.ts';
import { openApiDocument, openApiRoute } from '../../http/docs/openapi.ts';
import { describeInBrowser, startBrowser } from '../support/browser.ts';
import { aServer } from './shell.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const findingsOf = (options: string): string =>
  `axe.run(document, ${options}).then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'))`;
/** The page hears of the scheme before its second frame, and the renderer's buttons change their colours over a while. */
const SETTLED = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  .then(() => Promise.allSettled(document.getAnimations().map(({ finished }) => finished))).then(() => {})`;
/** The colours of the page's own text and of the renderer's. */
const INKS =
  "['body', '.opblock-description, .opblock-summary-description'].map((one) => getComputedStyle(document.querySelector(one)).color)";

describeInBrowser('the documentation page in a browser', () => {
  it('shows every operation and webhook, within its own policy and from its own server', async () => {
    const document = openApiRoute(
      openApiDocument(documentedRoutes(), { publicUrl: 'https://doorplate.example' }),
    );
    const app = aServer({ routes: [...docsRoutes(), document] });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const browser = await startBrowser();
    onTestFinished(async () => {
      await browser.close();
      await app.close();
    });
    const { port } = app.server.address() as AddressInfo;
    const page = await browser.newPage();
    const problems: string[] = [];
    const hosts = new Set<string>();
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('request', (request) => hosts.add(new URL(request.url()).host));

    await page.goto(`http://127.0.0.1:${port}/docs`);
    await page.waitForSelector('.opblock');
    const shown = await page.locator('.opblock').count();
    const { paths, webhooks } = (await (
      await fetch(`http://127.0.0.1:${port}/openapi.json`)
    ).json()) as Record<'paths' | 'webhooks', Record<string, object>>;
    const operations = [...Object.values(paths), ...Object.values(webhooks)].flatMap(Object.keys);
    await page.locator('.opblock-summary-path', { hasText: '/v1/lookup' }).first().click();
    await page.waitForSelector('.opblock.is-open .responses-table');

    await page.evaluate(AXE);
    const findings: unknown[] = [];
    const inks: unknown[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(SETTLED);
      inks.push(await page.evaluate(INKS));
      // In the dark only colours differ; all rules together take twice as long.
      const only = colorScheme === 'dark' ? "{ runOnly: ['color-contrast'] }" : '{}';
      findings.push(...((await page.evaluate(findingsOf(only))) as unknown[]));
    }

    expect(findings).toEqual([]);
    expect(inks).toEqual([
      ['rgb(22, 25, 29)', 'rgb(59, 65, 81)'],
      ['rgb(236, 237, 239)', 'rgb(228, 230, 230)'],
    ]);
    expect(await page.evaluate("document.querySelector('.top img').naturalWidth")).toBeGreaterThan(0);
    expect(await page.getAttribute('link[rel=icon]', 'href')).toBe(FAVICON);
    expect(shown).toBe(operations.length);
    expect(problems).toEqual([]);
    expect([...hosts].filter((host) => host !== '')).toEqual([`127.0.0.1:${port}`]);
  });
});
