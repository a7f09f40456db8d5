import { describe, expect, it } from 'vitest';
import { inPage, LATER_MS, type RunScene } from './stage.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const describeViews = (play: RunScene): void => {
  describe('a page view', () => {
    it('is one visit of the tracker, with the labels of the tag', () =>
      play(async ({ page, site, tag, tracker, visits, visitsSoFar, errors, warnings }) => {
        await page.goto(site.page('/', tag('{"plan":"pro","seats":3,"trial":false,"team":null}')));
        await visits(1);

        expect(await visitsSoFar()).toEqual([
          {
            tracker_id: tracker,
            token: expect.stringMatching(UUID),
            visit_id: expect.stringMatching(UUID),
            custom: { plan: 'pro', seats: 3, trial: false, team: null },
          },
        ]);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));

    it('counts again when it is reloaded, in the same tab', () =>
      play(async ({ page, open, visits }) => {
        await open();
        await visits(1);
        await page.reload();
        const [first, second] = await visits(2);

        expect(second?.token).toBe(first?.token);
        expect(second?.visit_id).not.toBe(first?.visit_id);
      }));

    it('counts again when it comes back from the back/forward cache', () =>
      play(async ({ page, site, tag, visits }) => {
        // The page tells it, because the driver of Chromium loses a page that comes back.
        const restored = site.asked('/restored');
        const tell = "<script>onpageshow = ({ persisted }) => persisted && fetch('/restored')</script>";
        await page.goto(site.page('/', tag() + tell));
        await visits(1);
        await page.goto(site.page('/other', 'nothing here'));
        await inPage(page, 'setTimeout(() => history.back())');
        await restored;
        const [first, second, ...more] = await visits(2);

        expect(second?.token).toBe(first?.token);
        expect(more).toEqual([]);
      }));
  });
};

/** `navigationApi`: false takes it from the browser. */
export const describeHistory = (play: RunScene, navigationApi: boolean): void => {
  // An address changes before its hashchange is told.
  const before = `
    ${navigationApi ? '' : 'delete window.navigation;'}
    window.hashChanges = 0;
    addEventListener('hashchange', () => { hashChanges += 1; });`;

  describe(`navigation by history ${navigationApi ? 'with' : 'without'} the Navigation API`, () => {
    it('is a view for each new entry and each step between entries', () =>
      play(async ({ page, open, visits }) => {
        await page.evaluateOnNewDocument(`${before} window.hasNavigation = 'navigation' in window`);
        await open();
        await visits(1);
        await inPage(page, "history.pushState({}, '', '/second')");
        await visits(2);
        await inPage(page, 'history.back()');
        await visits(3);
        await inPage(page, 'history.forward()');
        const all = await visits(4);
        expect(await page.evaluate('hasNavigation')).toBe(navigationApi);
        expect(new Set(all.map(({ token }) => token)).size).toBe(1);
        expect(new Set(all.map(({ visit_id }) => visit_id)).size).toBe(4);
      }));

    it("is no view for a replaced entry, a router's own event, a jump within the page or the step back from it", () =>
      play(async ({ page, site, tag, freezeTime, pass, becomes, visits, visitsSoFar }) => {
        await page.evaluateOnNewDocument(before);
        await freezeTime();
        await page.goto(site.page('/', `${tag()}<a href="#there">jump</a><p id="there">`));
        await visits(1);
        await inPage(page, "history.replaceState({}, '', '/other')");
        await inPage(page, "dispatchEvent(new PopStateEvent('popstate'))");
        await page.click('a');
        await becomes('hashChanges === 1');
        await inPage(page, 'history.back()');
        await becomes('hashChanges === 2');
        await pass(LATER_MS);

        expect(await visitsSoFar()).toHaveLength(1);
      }));

    it('is a view for an entry that a router pushes for a hash, and none for the steps between such entries', () =>
      play(async ({ page, open, freezeTime, pass, becomes, visits, visitsSoFar }) => {
        await page.evaluateOnNewDocument(before);
        await freezeTime();
        await open();
        await visits(1);
        await inPage(page, "history.pushState({}, '', '#/one')");
        await visits(2);
        await inPage(page, "history.pushState({}, '', '#/two')");
        await visits(3);
        await inPage(page, 'history.back()');
        await becomes('hashChanges === 1');
        await pass(LATER_MS);

        expect(await visitsSoFar()).toHaveLength(3);
      }));
  });
};
