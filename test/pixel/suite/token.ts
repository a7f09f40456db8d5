import { describe, expect, it } from 'vitest';
import { inPage, type RunScene } from './stage.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;

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
      play(async ({ page, open, visits }) => {
        await open();
        await visits(1);
        await (await page.browserContext().newPage()).goto(page.url());
        const [one, two] = await visits(2);
        expect(two?.token).not.toBe(one?.token);
      }));

    it('differs from that of the tab that opened it, and stays the same', () =>
      play(async ({ page, open, visits }) => {
        await open();
        const [first] = await visits(1);
        await inPage(page, "tab = window.open('/')");
        await visits(2);
        await inPage(page, "tab.history.pushState({}, '')");
        const [, opened, next] = await visits(3);
        await inPage(page, 'tab.close()');
        await page.reload();
        const [, , , original] = await visits(4);

        expect(opened?.token).not.toBe(first?.token);
        expect(next?.token).toBe(opened?.token);
        expect(original?.token).toBe(first?.token);
      }));

    it('stays the same when an opened tab is reloaded', () =>
      play(async ({ page, open, visits }) => {
        await open();
        await visits(1);
        await inPage(page, "tab = window.open('/')");
        await visits(2);
        await inPage(page, 'tab.location.reload()');
        const [, opened, reloaded] = await visits(3);
        expect(reloaded?.token).toBe(opened?.token);
      }));

    it('is renewed after 30 minutes without a visit, and not before', () =>
      play(async ({ page, open, freezeTime, pass, visits }) => {
        await freezeTime();
        const pause = async (ms: number) => {
          await pass(ms);
          await inPage(page, "history.pushState({}, '')");
        };
        await open();
        await visits(1);
        await pause(HALF_AN_HOUR_MS - 1);
        await visits(2);
        await pause(HALF_AN_HOUR_MS - 1);
        await visits(3);
        await pause(HALF_AN_HOUR_MS);
        const [one, two, three, four] = (await visits(4)).map(({ token }) => token);

        expect([two, three]).toEqual([one, one]);
        expect(four).not.toBe(one);
      }));

    it('is stored only with the time of its last visit, without a cookie', () =>
      play(async ({ page, open, tracker, visits, collector }) => {
        // Cookies of the service's host and of the page's: cookies ignore ports.
        const context = page.browserContext();
        await context.setCookie({ name: 'theirs', value: '1', domain: 'localhost' });
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
  });
};
