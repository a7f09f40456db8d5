/**
 * The pixel: the script that a customer's page loads as `/tracking/a.js` (contract, Pixel). The same text for
 * every tracker; the tag that loads it names the tracker. It never throws into the page, reads neither URL nor
 * content, and sets no cookie.
 */
import { parseLabels } from './labels.ts';
import { send } from './send.ts';
import { createTabToken } from './token.ts';
import { uuid } from './uuid.ts';
import { onEachView } from './views.ts';

declare global {
  interface Navigator {
    /** https://w3c.github.io/gpc/; true: the visitor objects. */
    readonly globalPrivacyControl?: boolean;
  }
}

const start = ({ src, dataset }: HTMLScriptElement): void => {
  const trackerId = new URL(src).searchParams.get('tracker_id')?.toLowerCase();
  const custom = parseLabels(dataset.custom ?? '');
  if (custom === null) {
    // biome-ignore lint/suspicious/noConsole: the installer of the tag needs the warning (contract, Pixel 7)
    console.warn('Doorplate: data-custom is not a flat JSON object within the limits; no visit is sent.');
    return;
  }
  if (!trackerId || !isFirst(trackerId)) return;
  const collector = new URL('collect', src).href;
  const tokenAt = createTabToken(`doorplate ${trackerId}`);

  onEachView(() => {
    // Read each time, because the visitor may object while the page is open.
    if (navigator.globalPrivacyControl) return;
    const visit = { tracker_id: trackerId, token: tokenAt(Date.now()), visit_id: uuid(), custom };
    send(collector, JSON.stringify(visit));
  });
};

/** false when the page holds the tag twice or inserts it again on each view, so that a visit counts once. */
const isFirst = (trackerId: string): boolean => {
  const mark = Symbol.for(`doorplate ${trackerId}`);
  const marks = window as unknown as Record<symbol, true>;
  if (marks[mark]) return false;
  marks[mark] = true;
  return true;
};

try {
  // null for a module and for an inline script: no tag names the tracker.
  if (document.currentScript) start(document.currentScript as HTMLScriptElement);
} catch {
  // The browser lacks a needed feature; the page must not notice.
}
