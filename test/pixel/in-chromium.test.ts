import { describeInBrowser } from '../support/browser.ts';
import { describeManners } from './suite/manners.ts';
import { describePages } from './suite/pages.ts';
import { setStage } from './suite/stage.ts';
import { describeToken } from './suite/token.ts';
import { describeViews } from './suite/views.ts';

/** One file, so that one browser serves all: several at once take longer than one after the other. */
describeInBrowser('the pixel in Chromium', () => {
  const play = setStage();
  describeViews(play);
  describeToken(play);
  describeManners(play);
  describePages(play);
});
