import { expect, it } from 'vitest';
import { openUnattended } from '../support/browser.ts';
import { describeIn } from '../support/engines.ts';
import { describeManners } from './suite/manners.ts';
import { describePages } from './suite/pages.ts';
import { describeRequests } from './suite/requests.ts';
import { setStage } from './suite/stage.ts';
import { describeToken } from './suite/token.ts';
import { describeHistory, describeViews } from './suite/views.ts';

/** One file, so that one browser serves all: several at once take longer than one after the other. */
describeIn('chromium')('the pixel in Chromium', () => {
  const play = setStage('chromium');
  describeViews(play);
  describeHistory(play, true);
  describeHistory(play, false);
  describeToken(play);
  describeRequests(play);
  describeManners(play);
  describePages(play);

  // Firefox prerenders nothing.
  it('counts no view while the page is prerendered, and one when it is opened', () =>
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
