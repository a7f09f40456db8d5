import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { inPage, LATER_MS, type RunScene } from './stage.ts';

const OTHER = '11111111-1111-4111-8111-111111111111';

/** What the script reads of `document`, where an element with its name stands in its place. */
const OF_DOCUMENT = ['currentScript', 'visibilityState', 'prerendering', 'addEventListener'];
const NAMED = [
  (name: string) => `<img name="${name}" src="/x?tracker_id=${OTHER}">`,
  (name: string) =>
    `<form name="${name}"><input name="src" value="https://other.example/a.js?tracker_id=${OTHER}"></form>`,
  (name: string) => `<iframe name="${name}"></iframe>`,
  (name: string) => `<object id="${name}"></object>`,
  (name: string) => `<img name="${name}"><img name="${name}">`,
];
/** What a page's script may declare for itself. */
const DECLARED = [
  'URL',
  'console',
  'crypto',
  'fetch',
  'history',
  'navigator',
  'opener',
  'performance',
  'sessionStorage',
];

/** Runs what it held back after the load, as a copy: what Rocket Loader does. */
const ROCKET_LOADER = `<script>
  Object.defineProperty(window, '__rocketLoaderLoadProgressSimulator', { value: {} });
  addEventListener('load', () => {
    for (const held of document.querySelectorAll('script[type="held-text/javascript"]')) {
      const copy = document.createElement('script');
      for (const { name, value } of held.attributes) copy.setAttribute(name, value);
      copy.type = 'text/javascript';
      held.replaceWith(copy);
    }
  });
</script>`;

/** Inserts a tag that was pasted into Custom HTML, as Google Tag Manager does: without attributes that it does not know. */
const pastedIntoTagManager = (src: string): string => `<script>
  window.google_tag_manager = { 'GTM-ABCDEF': {} };
  const pasted = document.createElement('script');
  pasted.async = false;
  pasted.type = 'text/javascript';
  pasted.id = '';
  pasted.src = '${src}';
  document.head.append(pasted);
</script>`;

export const describePages = (play: RunScene): void => {
  describe('the pixel on a hostile or busy page', () => {
    it.each(OF_DOCUMENT)('believes no element that the page names %s', (name) =>
      play(async ({ page, site, tag, tracker, visits, visitsSoFar, requested, errors, warnings }) => {
        for (const [before, element] of NAMED.entries()) {
          await page.goto(site.page('/', element(name) + tag()));
          expect((await visits(before + 1)).at(-1)).toMatchObject({ tracker_id: tracker });
        }
        expect(await visitsSoFar()).toHaveLength(NAMED.length);
        expect(requested.filter((url) => url.includes('other.example'))).toEqual([]);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }),
    );

    it('waits in a hidden page that has an element with the name visibilityState', () =>
      play(async ({ page, site, tag, visits, visitsSoFar }) => {
        await page.evaluateOnNewDocument(`Object.defineProperty(Document.prototype, 'visibilityState', {
          get: () => (window.inSight ? 'visible' : 'hidden'),
        })`);
        await page.goto(site.page('/', `<form name="visibilityState"></form>${tag()}`));
        expect(await visitsSoFar()).toEqual([]);
        await inPage(page, "inSight = true; document.dispatchEvent(new Event('visibilitychange'))");
        await visits(1);
      }));

    it('counts views where an element has the name of the Navigation API that the browser lacks', () =>
      play(async ({ page, site, tag, visits }) => {
        await page.evaluateOnNewDocument('delete window.navigation');
        await page.goto(site.page('/', `<nav id="navigation"></nav>${tag()}`));
        await visits(1);
        await inPage(page, "history.pushState({}, '')");
        await visits(2);
      }));

    it('counts where scripts of the page declare names of the browser for themselves', () =>
      play(async ({ page, site, tag, visits, errors }) => {
        for (const [before, name] of DECLARED.entries()) {
          await page.goto(site.page('/', `<script>const ${name} = 'of the page';</script>${tag()}`));
          await visits(before + 1);
        }
        expect(errors).toEqual([]);
      }));

    it('counts where a library has replaced URL and Array.from', () =>
      play(async ({ page, site, tag, visits }) => {
        const replaced = "<script>var URL = '/api'; Array.from = (list) => [...list];</script>";
        await page.goto(site.page('/', replaced + tag()));
        expect((await visits(1)).at(0)?.visit_id).toHaveLength(36);
      }));

    it("counts while the page's own keepalive requests use up what a page may have under way", () =>
      play(async ({ page, site, src, freezeTime, pass, answered, visits, collector, errors }) => {
        const release = site.hold('/busy');
        const busy = "fetch('/busy', { method: 'POST', keepalive: true, body: 'x'.repeat(64 * 1024) })";
        await freezeTime();
        await page.goto(site.page('/', 'nothing here'));
        const asked = site.asked('/busy');
        await inPage(page, `${busy}; answers = 0`);
        await asked;
        await inPage(
          page,
          `document.head.append(Object.assign(document.createElement('script'), { src: '${src}' }))`,
        );
        await answered(1);
        expect(collector.visits()).toEqual([]);
        await pass(LATER_MS);
        await visits(1);
        release();
        expect(errors).toEqual([]);
      }));

    it.each([
      [
        'inserts its text',
        (src: string) => `<script>
        fetch('${src}').then((answer) => answer.text()).then((text) => {
          document.head.append(Object.assign(document.createElement('script'), { text }));
        });</script>`,
      ],
      ['makes it a module', (src: string) => `<script type="module" src="${src}"></script>`],
    ])('sends nothing and warns when a page %s', (_, how) =>
      play(async ({ page, site, src, visitsSoFar, errors, warnings }) => {
        await page.goto(site.page('/', how(src) + how(src)));
        await eventually('a warning', () => warnings.length, Boolean);
        expect(await visitsSoFar()).toEqual([]);
        await expect.poll(() => warnings).toEqual([expect.stringContaining('data-cfasync')]);
        expect(errors).toEqual([]);
      }),
    );

    it('counts under Rocket Loader, with its labels, and warns that this is late', () =>
      play(async ({ page, site, tag, visits, errors, warnings }) => {
        const held = tag('{"plan":"pro"}').replace('<script', '<script type="held-text/javascript"');
        await page.goto(site.page('/', held + ROCKET_LOADER));
        expect(await visits(1)).toMatchObject([{ custom: { plan: 'pro' } }]);
        await expect.poll(() => warnings).toEqual([expect.stringContaining('data-cfasync="false"')]);
        expect(errors).toEqual([]);
      }));

    it('does not warn under Rocket Loader of a tag that it leaves alone', () =>
      play(async ({ page, site, tag, visits, warnings }) => {
        const excluded = tag().replace('<script', '<script data-cfasync="false"');
        await page.goto(site.page('/', ROCKET_LOADER + excluded));
        await visits(1);
        expect(warnings).toEqual([]);
      }));

    it('warns when Google Tag Manager has dropped the labels, and not when a script gives them', () =>
      play(async ({ page, site, src, visits, errors, warnings }) => {
        const pasted = pastedIntoTagManager(src);
        await page.goto(site.page('/', pasted));
        await visits(1);
        expect(warnings).toEqual([expect.stringContaining('data-custom')]);

        const labels = `pasted.setAttribute('data-custom', '{"plan":"pro"}'); document.head`;
        await page.goto(site.page('/', pasted.replace('document.head', labels)));
        expect((await visits(2)).at(-1)).toMatchObject({ custom: { plan: 'pro' } });
        expect(warnings).toHaveLength(1);
        expect(errors).toEqual([]);
      }));
  });
};
