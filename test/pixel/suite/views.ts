import { describe, expect, it } from 'vitest';
import { inPage, openUnattended } from '../../support/browser.ts';
import type { RunScene } from './stage.ts';

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

    it('is counted once, however often the page has the tag', () =>
      play(async ({ page, site, tag, tracker, visits, visitsSoFar }) => {
        const other = tag().replace(tracker, '11111111-1111-4111-8111-111111111111');
        await page.goto(
          site.page('/', tag() + tag() + tag().replace(tracker, tracker.toUpperCase()) + other),
        );
        await visits(2);

        const counted = (await visitsSoFar()).map(({ tracker_id }) => tracker_id);
        expect(counted.toSorted()).toEqual([tracker, '11111111-1111-4111-8111-111111111111'].toSorted());
      }));

    it('is counted when a hidden page becomes visible, whatever happens there before', () =>
      play(async ({ context, page, open, visits, visitsSoFar }) => {
        // A page under automation is always visible, so visibility is simulated.
        await context.addInitScript(`Object.defineProperty(document, 'visibilityState', {
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

    it('counts again when it comes back from the back/forward cache', () =>
      play(async ({ page, site, open, visits, visitsSoFar }) => {
        await open();
        await visits(1);
        await inPage(page, 'kept = true');
        await page.goto(site.page('/other', 'nothing here'));
        await inPage(page, 'history.back()').catch(() => 'the page left while it was asked');
        const [first, second] = await visits(2);

        expect(await page.evaluate('[kept, location.pathname]')).toEqual([true, '/']);
        expect(second?.token).toBe(first?.token);
        expect(await visitsSoFar()).toHaveLength(2);
      }));

    it('is not counted while the page is prerendered, and once when it is opened', () =>
      play(async ({ site, collector, tag, visits }) => {
        const ahead = site.page(
          '/ahead',
          `${tag()}<script>onload = () => fetch('/ready?' + document.prerendering)</script>`,
        );
        const rules = { prerender: [{ source: 'list', urls: [ahead], eagerness: 'immediate' }] };
        const first = site.page(
          '/',
          `<script type="speculationrules">${JSON.stringify(rules)}</script>
         <script>fetch('/open').then(() => { location.href = '/ahead'; })</script>`,
        );
        const [ready, open] = [site.asked('/ready'), site.hold('/open')];
        const browser = openUnattended(first);
        try {
          expect(await ready).toBe('?true');
          expect(collector.visits()).toEqual([]);
          open();
          await visits(1);
        } finally {
          await browser.close();
        }
        expect(collector.visits()).toHaveLength(1);
        // The service accepts no visit that a browser dates ahead of its time.
        expect(collector.received[0]?.headers['sec-purpose']).toBeUndefined();
      }));
  });

  describe.each([
    ['with the Navigation API', ''],
    ['without the Navigation API', 'delete window.navigation;'],
  ])('navigation by history %s', (_which, before) => {
    it('is a view for each new entry and each step between entries', () =>
      play(async ({ page, context, open, visits }) => {
        await context.addInitScript(`${before} window.hasNavigation = 'navigation' in window`);
        await open();
        await visits(1);
        await inPage(page, "history.pushState({}, '', '/second')");
        await visits(2);
        await inPage(page, 'history.back()');
        await visits(3);
        await inPage(page, 'history.forward()');
        const all = await visits(4);
        expect(await page.evaluate('hasNavigation')).toBe(before === '');
        expect(new Set(all.map(({ token }) => token)).size).toBe(1);
        expect(new Set(all.map(({ visit_id }) => visit_id)).size).toBe(4);
      }));

    it("is no view for a replaced entry, a router's own event, a jump within the page or the step back from it", () =>
      play(async ({ page, context, site, tag, visits, visitsSoFar }) => {
        await context.addInitScript(before);
        await page.clock.install();
        await page.goto(site.page('/', `${tag()}<a href="#there">jump</a><p id="there">`));
        await visits(1);
        await inPage(page, "history.replaceState({}, '', '/other')");
        await inPage(page, "dispatchEvent(new PopStateEvent('popstate'))");
        await page.click('a');
        await page.waitForFunction("location.hash === '#there'");
        await inPage(page, 'history.back()');
        await page.waitForFunction("location.hash === ''");
        // Longer than the script waits for the reason of a step.
        await page.clock.fastForward(1_000);

        expect(await visitsSoFar()).toHaveLength(1);
      }));

    it('is a view for an entry that a router pushes for a hash, and none for the steps between such entries', () =>
      play(async ({ page, context, open, visits, visitsSoFar }) => {
        await context.addInitScript(before);
        await page.clock.install();
        await open();
        await visits(1);
        await inPage(page, "history.pushState({}, '', '#/one')");
        await visits(2);
        await inPage(page, "history.pushState({}, '', '#/two')");
        await visits(3);
        await inPage(page, 'history.back()');
        await page.waitForFunction("location.hash === '#/one'");
        await page.clock.fastForward(1_000);

        expect(await visitsSoFar()).toHaveLength(3);
      }));

    it("leaves the page's own calls unchanged", () =>
      play(async ({ page, context, open, visits }) => {
        await context.addInitScript(before);
        await open();
        await visits(1);
        await inPage(page, "history.pushState({ step: 7 }, '', '/second')");

        expect(await page.evaluate('[history.state.step, location.pathname]')).toEqual([7, '/second']);
        await expect(inPage(page, "history.pushState({}, '', 'https://elsewhere.example/')")).rejects.toThrow(
          /SecurityError|cannot be created/,
        );
      }));
  });
};
