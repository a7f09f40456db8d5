import { describe, expect, it } from 'vitest';
import { inPage } from '../../support/browser.ts';
import type { RunScene } from './stage.ts';

const CLOSED_STORAGE = `Object.defineProperty(window, 'sessionStorage', {
  get() { throw new DOMException('closed', 'SecurityError'); },
});`;
const FULL_STORAGE =
  "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };";
const SOME_TOKEN = '11111111-1111-4111-8111-111111111111';

export const describeToken = (play: RunScene): void => {
  describe('the token of a tab', () => {
    it('stays the same from page to page of a site', () =>
      play(async ({ open, visits }) => {
        await open('/one');
        await visits(1);
        await open('/two');
        const [one, two] = await visits(2);
        expect(two?.token).toBe(one?.token);
      }));

    it("differs from another tab's", () =>
      play(async ({ context, page, open, visits }) => {
        await open();
        await visits(1);
        await (await context.newPage()).goto(page.url());
        const [one, two] = await visits(2);
        expect(two?.token).not.toBe(one?.token);
      }));

    it('differs from that of the tab that opened it, and stays the same', () =>
      play(async ({ context, page, open, visits }) => {
        await open();
        const [first] = await visits(1);
        const popup = context.waitForEvent('page');
        await inPage(page, "window.open('/')");
        await visits(2);
        await inPage(await popup, "history.pushState({}, '')");
        const [, opened, next] = await visits(3);
        await page.reload();
        const [, , , original] = await visits(4);

        expect(opened?.token).not.toBe(first?.token);
        expect(next?.token).toBe(opened?.token);
        expect(original?.token).toBe(first?.token);
      }));

    it('stays the same when an opened tab is reloaded', () =>
      play(async ({ context, page, open, visits }) => {
        await open();
        await visits(1);
        const popup = context.waitForEvent('page');
        await inPage(page, "window.open('/')");
        await visits(2);
        await (await popup).reload();
        const [, opened, reloaded] = await visits(3);
        expect(reloaded?.token).toBe(opened?.token);
      }));

    it('is renewed after 30 minutes without a visit, and not before', () =>
      play(async ({ page, open, visits }) => {
        await page.clock.install();
        const pause = async (minutesAndSeconds: string) => {
          await page.clock.fastForward(minutesAndSeconds);
          await inPage(page, "history.pushState({}, '')");
        };
        await open();
        await visits(1);
        await pause('29:59');
        await visits(2);
        await pause('29:59');
        await visits(3);
        await pause('30:00');
        const [one, two, three, four] = (await visits(4)).map(({ token }) => token);

        expect([two, three]).toEqual([one, one]);
        expect(four).not.toBe(one);
      }));

    it('differs for another tracker', () =>
      play(async ({ page, site, tag, tracker, visits }) => {
        const other = tag().replace(tracker, '11111111-1111-4111-8111-111111111111');
        await page.goto(site.page('/', tag() + other));
        const [one, two] = await visits(2);
        expect(two?.token).not.toBe(one?.token);
      }));

    it('is stored only with the time of its last visit, without a cookie', () =>
      play(async ({ context, page, open, tracker, visits, collector }) => {
        // Cookies of the service's host and of the page's: cookies ignore ports.
        await context.addCookies([{ name: 'theirs', value: '1', url: collector.origin }]);
        await open();
        const [visit] = await visits(1);
        const stored = (await page.evaluate('({ ...sessionStorage })')) as Record<string, string>;

        expect(stored).toEqual({
          [`doorplate ${tracker}`]: expect.stringMatching(new RegExp(`^${visit?.token} \\d{13}$`)),
        });
        expect(await page.evaluate('[localStorage.length, document.cookie]')).toEqual([0, 'theirs=1']);
        expect(await page.evaluate('indexedDB.databases()')).toEqual([]);
        expect(await context.cookies()).toHaveLength(1);
        expect(collector.received[0]?.headers.cookie).toBeUndefined();
      }));

    it.each([
      ['closed', CLOSED_STORAGE],
      ['full', FULL_STORAGE],
    ])('lasts as long as the page when the storage is %s', (_how, before) =>
      play(async ({ context, page, open, visits, errors, warnings }) => {
        await context.addInitScript(before);
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

    it('is replaced when the stored value is invalid', () =>
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
  });
};
