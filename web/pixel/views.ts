import { readDocument } from './document.ts';

/**
 * Calls back once for each page view: the loaded page, each navigation within it, and its return from the
 * back/forward cache. A hidden page (a tab in the background, a prerendered page) is a view when it becomes visible,
 * and none if it never does.
 */
export const onEachView = (viewed: () => void): void => {
  let unseen = false;
  const check = (): void => {
    if (!unseen || readDocument('prerendering') || readDocument('visibilityState') === 'hidden') return;
    unseen = false;
    try {
      viewed();
    } catch {
      // An error of the pixel must not reach the page.
    }
  };
  const begin = (): void => {
    unseen = true;
    check();
  };

  // Of `document` it may be an element of the page (`readDocument`).
  addEventListener.call(document, 'prerenderingchange', check);
  addEventListener.call(document, 'visibilitychange', check);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) begin();
  });
  begin();
  onNavigation(begin);
};

/** The time between a `popstate` and the `hashchange` that shows its reason. */
const HASH_CHANGE_MS = 50;

/**
 * Calls back when the page navigates without a load: a new history entry, or a step back or forward. Not when an
 * entry is replaced, and not for a jump within the page (`#…`). It reads no URL to tell these apart.
 */
const onNavigation = (navigated: () => void): void => {
  const { navigation } = window;
  // Where the browser has none, it may be an element of the page: `<nav id="navigation">`.
  if (Object.prototype.toString.call(navigation) === '[object Navigation]')
    watchNavigation(navigation, navigated);
  else watchHistory(navigated);
};

/** https://html.spec.whatwg.org/multipage/nav-history-apis.html#navigation-interface */
const watchNavigation = (navigation: Navigation, navigated: () => void): void => {
  let within = false;
  navigation.addEventListener('navigate', ({ hashChange }) => {
    within = hashChange;
  });
  navigation.addEventListener('currententrychange', ({ navigationType }) => {
    if (!within && (navigationType === 'push' || navigationType === 'traverse')) navigated();
  });
};

/** Browsers before 2026 show a `pushState` only by the call itself. */
const watchHistory = (navigated: () => void): void => {
  const { history } = window;
  const { pushState } = history;
  history.pushState = function (...entry) {
    const result = pushState.apply(this, entry);
    navigated();
    return result;
  };

  let timer = 0;
  addEventListener('popstate', ({ isTrusted }) => {
    // Routers dispatch synthetic events after a pushState.
    if (isTrusted) timer = setTimeout(navigated, HASH_CHANGE_MS);
  });
  addEventListener('hashchange', () => clearTimeout(timer));
};
