import { describe, expect, it } from 'vitest';
import { inPage, LATER_MS, type RunScene } from './stage.ts';

const CLOSED_STORAGE = `Object.defineProperty(window, 'sessionStorage', {
  get() { throw new DOMException('closed', 'SecurityError'); },
});`;
const FULL_STORAGE =
  "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };";
const SOME_TOKEN = '11111111-1111-4111-8111-111111111111';

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
      play(async ({ page, site, tag, visitsSoFar, errors, warnings }) => {
        await page.evaluateOnNewDocument(
          "Object.defineProperty(navigator, 'globalPrivacyControl', { get: () => location.pathname === '/objects' })",
        );
        await page.goto(site.page('/objects', tag()));
        await inPage(page, "history.pushState({ }, '', '/objects')");

        expect(await visitsSoFar()).toEqual([]);
        expect(await page.evaluate('sessionStorage.length')).toBe(0);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));

    it.each([429, 503])('retries once with the same visit after %i', (status) =>
      play(async ({ open, freezeTime, pass, answered, visitsSoFar, collector, errors }) => {
        await freezeTime();
        collector.answerNext(status, status);
        await open();
        await answered(1);
        await pass(LATER_MS);
        await answered(2);
        await pass(LATER_MS);

        const [first, second, ...more] = await visitsSoFar();
        expect(second).toEqual(first);
        expect([more, errors]).toEqual([[], []]);
      }),
    );

    it.each([204, 403])('does not retry after %i', (status) =>
      play(async ({ open, freezeTime, pass, answered, visitsSoFar, collector, errors }) => {
        await freezeTime();
        collector.answerNext(status);
        await open();
        await answered(1);
        await pass(LATER_MS);

        expect(await visitsSoFar()).toHaveLength(1);
        expect(errors).toEqual([]);
      }),
    );

    it.each([
      ['with', ''],
      ['without', 'delete window.navigation'],
    ])("leaves the page's own calls unchanged %s the Navigation API", (_which, before) =>
      play(async ({ page, open, visits }) => {
        await page.evaluateOnNewDocument(before);
        await open();
        await visits(1);
        await inPage(page, "history.pushState({ step: 7 }, '', '/second')");

        expect(await page.evaluate('[history.state.step, location.pathname]')).toEqual([7, '/second']);
        const elsewhere = "history.pushState({}, '', 'https://elsewhere.example/')";
        expect(await inPage(page, `try { ${elsewhere} } catch ({ name }) { return name; }`)).toBe(
          'SecurityError',
        );
      }),
    );

    it('counts a view once, however often the page has the tag', () =>
      play(async ({ page, site, tag, tracker, visits, visitsSoFar }) => {
        const other = tag().replace(tracker, '11111111-1111-4111-8111-111111111111');
        await page.goto(
          site.page('/', tag() + tag() + tag().replace(tracker, tracker.toUpperCase()) + other),
        );
        await visits(2);

        const counted = (await visitsSoFar()).map(({ tracker_id }) => tracker_id);
        expect(counted.toSorted()).toEqual([tracker, '11111111-1111-4111-8111-111111111111'].toSorted());
      }));

    it('counts a hidden page when it becomes visible, whatever happens there before', () =>
      play(async ({ page, open, visits, visitsSoFar }) => {
        // A page under automation is always visible, so visibility is simulated.
        await page.evaluateOnNewDocument(`Object.defineProperty(document, 'visibilityState', {
        get: () => (location.pathname === '/' && !window.inSight ? 'hidden' : 'visible'),
      })`);
        await open();
        await inPage(page, "history.pushState({}, '')");
        await inPage(page, "document.dispatchEvent(new Event('visibilitychange'))");
        expect(await visitsSoFar()).toEqual([]);

        await inPage(page, "inSight = true; document.dispatchEvent(new Event('visibilitychange'))");
        await visits(1);
        await inPage(page, "document.dispatchEvent(new Event('visibilitychange'))");
        expect(await visitsSoFar()).toHaveLength(1);
      }));

    it.each([
      ['closed', CLOSED_STORAGE],
      ['full', FULL_STORAGE],
    ])('keeps the token as long as the page when the storage is %s', (_how, before) =>
      play(async ({ page, open, visits, errors, warnings }) => {
        await page.evaluateOnNewDocument(before);
        await open();
        await visits(1);
        await inPage(page, "history.pushState({}, '')");
        await visits(2);
        await page.reload();
        const [one, two, three] = (await visits(3)).map(({ token }) => token);

        expect(two).toBe(one);
        expect(three).not.toBe(one);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }),
    );

    it('gives each tracker a token of its own', () =>
      play(async ({ page, site, tag, tracker, visits }) => {
        const other = tag().replace(tracker, '11111111-1111-4111-8111-111111111111');
        await page.goto(site.page('/', tag() + other));
        const [one, two] = await visits(2);
        expect(two?.token).not.toBe(one?.token);
      }));

    it('replaces a stored token that is invalid', () =>
      play(async ({ page, tracker, open, visits }) => {
        await open();
        await visits(1);
        for (const [before, stored] of ['', 'x', 'NaN 1', SOME_TOKEN, `${SOME_TOKEN} x`].entries()) {
          await inPage(page, `sessionStorage.setItem('doorplate ${tracker}', '${stored}')`);
          await page.reload();
          const token = (await visits(before + 2)).at(-1)?.token;
          expect(token).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/);
          expect(token).not.toBe(SOME_TOKEN);
        }
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
