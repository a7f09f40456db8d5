import { describe, expect, it } from 'vitest';
import { inPage } from '../../support/browser.ts';
import type { RunScene } from './stage.ts';

/** Longer than the script's retry delay. */
const LATER_MS = 5_000;

const MISSING = [
  ['window', 'crypto'],
  ['window', 'history'],
  ['window', 'performance'],
  ['window', 'URL'],
  ['Symbol', 'for'],
  ['JSON', 'stringify'],
  ['document', 'addEventListener'],
] as const;

export const describeManners = (play: RunScene): void => {
  describe("the pixel on a customer's page", () => {
    it('sends and stores nothing when the visitor objects (Global Privacy Control)', () =>
      play(async ({ context, page, site, tag, visitsSoFar, errors, warnings }) => {
        await context.addInitScript(
          "Object.defineProperty(navigator, 'globalPrivacyControl', { get: () => location.pathname === '/objects' })",
        );
        await page.goto(site.page('/objects', tag()));
        await inPage(page, "history.pushState({ }, '', '/objects')");

        expect(await visitsSoFar()).toEqual([]);
        expect(await page.evaluate('sessionStorage.length')).toBe(0);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));

    it('sends nothing about the page: no URL, no title, no preflight', () =>
      play(async ({ page, site, tag, visits, collector }) => {
        await page.goto(
          `${site.page('/private/path', `<meta name="referrer" content="unsafe-url">${tag()}`)}?secret=1#part`,
        );
        await visits(1);
        const [{ method, headers, body } = { method: '', headers: {}, body: '' }] = collector.received;

        expect([method, headers['content-type'], headers.origin]).toEqual([
          'POST',
          'text/plain;charset=UTF-8',
          site.origin,
        ]);
        expect(headers.referer).toBeUndefined();
        expect(Object.keys(JSON.parse(body))).toEqual(['tracker_id', 'token', 'visit_id', 'custom']);
        expect(JSON.stringify({ headers, body })).not.toMatch(/private|secret|customer's/);
      }));

    it.each([429, 503])('retries once with the same visit after %i', (status) =>
      play(async ({ page, open, answered, visitsSoFar, collector, errors }) => {
        await page.clock.install();
        collector.answerNext(status, status);
        await open();
        await answered(1);
        await page.clock.fastForward(LATER_MS);
        await answered(2);
        await page.clock.fastForward(LATER_MS);

        const [first, second, ...more] = await visitsSoFar();
        expect(second).toEqual(first);
        expect([more, errors]).toEqual([[], []]);
      }),
    );

    it.each([204, 403])('does not retry after %i', (status) =>
      play(async ({ page, open, answered, visitsSoFar, collector, errors }) => {
        await page.clock.install();
        collector.answerNext(status);
        await open();
        await answered(1);
        await page.clock.fastForward(LATER_MS);

        expect(await visitsSoFar()).toHaveLength(1);
        expect(errors).toEqual([]);
      }),
    );

    it('retries once when the server is down', () =>
      play(async ({ page, open, answered, collector, errors, warnings }) => {
        const attempts: (string | null)[] = [];
        page.on('request', (request) => {
          if (request.url().endsWith('/collect')) attempts.push(request.postData());
        });
        await page.clock.install();
        await open();
        await answered(1);
        await collector.close();
        await inPage(page, "history.pushState({}, '')");
        await answered(2);
        await page.clock.fastForward(LATER_MS);
        await answered(3);
        await page.clock.fastForward(LATER_MS);
        await inPage(page, "history.pushState({}, '')");
        await answered(4);

        const [, first, second, next, ...more] = attempts;
        expect(second).toBe(first);
        expect(next).not.toBe(first);
        expect({ more, errors, warnings }).toEqual({ more: [], errors: [], warnings: [] });
      }));

    it('works under a policy that allows only the service', () =>
      play(async ({ page, site, tag, visits, collector, errors }) => {
        const policy = `default-src 'none'; script-src ${collector.origin}; connect-src ${collector.origin}`;
        await page.goto(site.page('/', tag(), { 'content-security-policy': policy }));
        await visits(1);
        expect(errors).toEqual([]);
      }));

    it('works under a strict policy, by its nonce, with Trusted Types', () =>
      play(async ({ page, site, tag, visits, collector, errors }) => {
        const scripts = "script-src 'nonce-abc' 'strict-dynamic'; require-trusted-types-for 'script'";
        const policy = `default-src 'none'; ${scripts}; connect-src ${collector.origin}`;
        const tagged = tag().replace('<script', '<script nonce="abc"');
        await page.goto(site.page('/', tagged, { 'content-security-policy': policy }));
        await visits(1);
        expect(errors).toEqual([]);
      }));

    it('throws nothing under a policy that blocks its requests', () =>
      play(async ({ page, site, tag, answered, collector, errors, warnings }) => {
        await page.clock.install();
        const policy = `default-src 'none'; script-src ${collector.origin}`;
        await page.goto(site.page('/', tag(), { 'content-security-policy': policy }));
        await answered(1);
        await page.clock.fastForward(LATER_MS);
        await answered(2);

        expect(collector.visits()).toEqual([]);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));

    it('throws nothing when a browser lacks a feature or a page has removed it', () =>
      play(async ({ page, site, tag, visitsSoFar, errors }) => {
        for (const [of, name] of MISSING) {
          const without = `Object.defineProperty(${of}, '${name}', { value: undefined })`;
          await page.goto(site.page('/', `<script>${without}</script>${tag()}`));
          expect(errors, `${of}.${name}`).toEqual([]);
        }
        await page.goto(site.page('/', tag()));
        await visitsSoFar();
      }));

    it('warns once of invalid labels and sends nothing', () =>
      play(async ({ page, site, tag, visitsSoFar, errors, warnings }) => {
        await page.goto(site.page('/', tag('{"plan":["pro"]}')));
        await inPage(page, "history.pushState({}, '')");

        expect(await visitsSoFar()).toEqual([]);
        expect(await page.evaluate('sessionStorage.length')).toBe(0);
        expect(warnings).toEqual([expect.stringContaining('data-custom')]);
        expect(errors).toEqual([]);
      }));

    it('treats a missing or empty attribute and empty properties as no labels', () =>
      play(async ({ page, site, tag, visits, warnings }) => {
        for (const [before, custom] of ['', ' ', '{}'].entries()) {
          await page.goto(site.page('/', tag(custom)));
          expect((await visits(before + 1)).at(-1)).toMatchObject({ custom: {} });
        }
        expect(warnings).toEqual([]);
      }));
  });
};
