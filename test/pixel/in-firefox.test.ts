import { describe, expect, it } from 'vitest';
import { describeIn } from '../support/engines.ts';
import { describeRequests } from './suite/requests.ts';
import { setStage } from './suite/stage.ts';
import { describeToken } from './suite/token.ts';
import { describeHistory, describeViews } from './suite/views.ts';

/** What depends on the engine. The rest is tried in Chromium alone: a test takes Firefox half a second and more. */
describeIn('firefox')('the pixel in Firefox', () => {
  const play = setStage('firefox');
  describeViews(play);
  describeHistory(play, true);
  describeToken(play);
  describeRequests(play);

  describe('whose visitor objects (Global Privacy Control)', () => {
    const playObjecting = setStage('firefox', { 'privacy.globalprivacycontrol.enabled': true });

    it('sends and stores nothing', () =>
      playObjecting(async ({ page, open, visitsSoFar, errors, warnings }) => {
        await open();
        expect(await page.evaluate('navigator.globalPrivacyControl')).toBe(true);
        expect(await visitsSoFar()).toEqual([]);
        expect(await page.evaluate('sessionStorage.length')).toBe(0);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      }));
  });
});
