import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { inPage, LATER_MS, type RunScene } from './stage.ts';

export const describeRequests = (play: RunScene): void => {
  describe('a request of the pixel', () => {
    it('tells the service alone, and nothing about the page: no URL, no title, no preflight', () =>
      play(async ({ page, site, tag, visits, collector, requested }) => {
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
        expect(new Set(requested.map((url) => new URL(url).origin))).toEqual(
          new Set([site.origin, collector.origin]),
        );
      }));

    it('outlives the tab that made it', () =>
      play(async ({ page, open, collector, visits }) => {
        const release = collector.hold();
        await open();
        await visits(1);
        await inPage(page, `fetch('${collector.origin}/tracking/collect', { method: 'POST', body: '{}' })`);
        await visits(2);
        await page.close();
        await eventually("the end of the page's own request", () => collector.abandoned.length);
        release();
        await eventually('the answer to the visit', () => collector.answered.length);

        expect(collector.abandoned).toEqual(['{}']);
      }));

    it('is repeated once when the server is down', () =>
      play(async ({ page, open, freezeTime, pass, answered, collector, errors, warnings }) => {
        await freezeTime();
        await open();
        await answered(1);
        await collector.close();
        await inPage(page, "history.pushState({}, '')");
        await answered(2);
        await pass(LATER_MS);
        await answered(3);
        await pass(LATER_MS);
        await inPage(page, "history.pushState({}, '')");
        await answered(4);

        const [, first, second, next, ...more] = (await page.evaluate('attempts')) as string[];
        expect(second).toBe(first);
        expect(next).not.toBe(first);
        expect({ more, errors, warnings }).toEqual({ more: [], errors: [], warnings: [] });
      }));

    it('is made under a policy that allows only the service', () =>
      play(async ({ page, site, tag, visits, collector, errors }) => {
        const policy = `default-src 'none'; script-src ${collector.origin}; connect-src ${collector.origin}`;
        await page.goto(site.page('/', tag(), { 'content-security-policy': policy }));
        await visits(1);
        expect(errors).toEqual([]);
      }));

    it('is made under a strict policy, by its nonce, with Trusted Types', () =>
      play(async ({ page, site, tag, visits, collector, errors }) => {
        const scripts = "script-src 'nonce-abc' 'strict-dynamic'; require-trusted-types-for 'script'";
        const policy = `default-src 'none'; ${scripts}; connect-src ${collector.origin}`;
        const tagged = tag().replace('<script', '<script nonce="abc"');
        await page.goto(site.page('/', tagged, { 'content-security-policy': policy }));
        await visits(1);
        expect(errors).toEqual([]);
      }));

    it('throws nothing where a policy blocks it', () =>
      play(async ({ page, site, tag, freezeTime, pass, answered, collector, errors, warnings }) => {
        await freezeTime();
        const policy = `default-src 'none'; script-src ${collector.origin}`;
        await page.goto(site.page('/', tag(), { 'content-security-policy': policy }));
        await answered(1);
        await pass(LATER_MS);
        await answered(2);

        expect(collector.visits()).toEqual([]);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));

    it('is not made where a policy blocks the script, and the page goes on', () =>
      play(async ({ page, site, tag, visitsSoFar, becomes, errors, warnings }) => {
        const policy = "script-src 'nonce-abc'";
        const own = '<script nonce="abc">onload = () => { loaded = true; }; loaded = false</script>';
        await page.goto(site.page('/', tag() + own, { 'content-security-policy': policy }));
        await becomes('loaded');

        expect(await visitsSoFar()).toEqual([]);
        expect(await page.evaluate('sessionStorage.length')).toBe(0);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));
  });
};
