/**
 * The pixel: the script that a customer's page loads as `/tracking/a.js` (contract, Pixel). The same text for
 * every tracker; the tag that loads it names the tracker. It never throws into the page, reads neither URL nor
 * content, and sets no cookie.
 *
 * Names of the browser are read from `window`: a script of the page that declares `const history = …` hides the bare name.
 */
import { readDocument } from './document.ts';
import { parseLabels } from './labels.ts';
import { onEachView } from './views.ts';

declare global {
  interface Navigator {
    /** https://w3c.github.io/gpc/; true: the visitor objects. */
    readonly globalPrivacyControl?: boolean;
  }
}

/** The address of the script in its own tag. A page may have put another `URL` in the place of the browser's. */
const OWN_SRC = /^([^?#]+\/)a\.js\?(?:[^#]*?&)?tracker_id=([\w-]{36})/i;

const start = (tag: HTMLScriptElement | null): void => {
  const [, folder, id] = OWN_SRC.exec(String(tag?.src)) ?? [];
  if (!tag || !id) {
    // A module, a copy, or a loader that runs the text elsewhere. No other element is believed.
    if (isFirst(''))
      warn('not run by its own tag; no visit is sent. Under Rocket Loader: data-cfasync="false" before src.');
    return;
  }
  const trackerId = id.toLowerCase();
  const custom = parseLabels(tag.dataset.custom ?? '');
  if (custom === null) {
    warn('data-custom is not a flat JSON object within the limits; no visit is sent.');
    return;
  }
  if (!isFirst(trackerId)) return;
  warnOfLoaders(tag.dataset);
  const collector = `${folder}collect`;
  const tokenAt = createTabToken(`doorplate ${trackerId}`);

  onEachView(() => {
    // Read each time, because the visitor may object while the page is open.
    if (window.navigator.globalPrivacyControl) return;
    const visit = { tracker_id: trackerId, token: tokenAt(Date.now()), visit_id: uuid(), custom };
    send(collector, JSON.stringify(visit));
  });
};

/** Warns of what changes tags on its way to the page, by what it leaves on `window`. */
const warnOfLoaders = ({ custom, cfasync }: DOMStringMap): void => {
  if (custom === undefined && 'google_tag_manager' in window)
    warn(
      'no data-custom, so no labels. Google Tag Manager drops it from a pasted tag: insert the tag by a script.',
    );
  if (cfasync !== 'false' && '__rocketLoaderLoadProgressSimulator' in window)
    warn('Rocket Loader holds visits back until the page has loaded: data-cfasync="false" before src.');
};

// biome-ignore lint/suspicious/noConsole: the installer of the tag needs the warning (contract, Pixel 7)
const warn = (text: string): void => window.console.warn(`Doorplate: ${text}`);

/** false when the page holds the tag twice or inserts it again on each view, so that a visit counts once. */
const isFirst = (trackerId: string): boolean => {
  const mark = Symbol.for(`doorplate ${trackerId}`);
  const marks = window as unknown as Record<symbol, true>;
  if (marks[mark]) return false;
  marks[mark] = true;
  return true;
};

const RETRY_AFTER_MS = 1_000;

/**
 * Sends a visit, and once more after a second or two if it was not accepted: the repeat has the same visit id. A text
 * body makes `Content-Type: text/plain`, which needs no preflight. It does not block the page and never fails.
 */
const send = async (collector: string, visit: string, again = true): Promise<void> => {
  let status = 0;
  try {
    const answer = await window.fetch(collector, {
      method: 'POST',
      body: visit,
      credentials: 'omit',
      // Continues after the page has been left. Not the repeat: the 64 KiB that a page may have under way in this way may
      // have been used up by its own requests.
      keepalive: again,
      // Sends no URL of the page, whatever the page's own policy is.
      referrerPolicy: 'no-referrer',
    });
    status = answer.status;
  } catch {
    // No network, no server, or a policy of the page.
  }
  const taken = status !== 0 && status !== 429 && status < 500;
  if (!taken && again) setTimeout(() => send(collector, visit, false), RETRY_AFTER_MS * (1 + Math.random()));
};

/** Renewal of the session token (contract, Pixel). */
const RENEWED_AFTER_MS = 30 * 60_000;
/** The stored value: the token and the time of its last visit, milliseconds. */
const STORED = /^(\w{8}-\w{4}-\w{4}-\w{4}-\w{12}) (\d+)$/;

/**
 * Returns the token of this tab for a visit at a given time, and stores that time as the token's last visit. The
 * token is kept in sessionStorage, or in the page alone when that is unavailable.
 */
const createTabToken = (key: string): ((now: number) => string) => {
  let inPage: string | null = null;
  let copied = isCopy();

  const read = (): string => {
    try {
      return inPage ?? window.sessionStorage.getItem(key) ?? '';
    } catch {
      return '';
    }
  };
  const write = (text: string): void => {
    try {
      window.sessionStorage.setItem(key, text);
    } catch {
      inPage = text;
    }
  };

  return (now) => {
    const [, known, last] = STORED.exec(copied ? '' : read()) ?? [];
    copied = false;
    // In both directions: a clock that was set back must not keep a token for ever.
    const token = known && Math.abs(now - Number(last)) < RENEWED_AFTER_MS ? known : uuid();
    write(`${token} ${now}`);
    return token;
  };
};

/** Whether this is the first page of a tab that another one opened: it has a copy of that one's sessionStorage. */
const isCopy = (): boolean => {
  const { performance, opener, history } = window;
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return opener !== null && history.length === 1 && navigation?.type === 'navigate';
};

/** A random UUID (version 4). Pages without TLS lack `crypto.randomUUID`; `getRandomValues` is everywhere. */
const uuid = (): string => {
  const bytes = window.crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  let hex = '';
  // Not Array.from, which older libraries replace by one that maps nothing.
  for (const byte of bytes) hex += (byte + 0x100).toString(16).slice(1);
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
};

try {
  start(readDocument('currentScript') as HTMLScriptElement | null);
} catch {
  // The browser lacks a needed feature; the page must not notice.
}
