/** Between a `popstate` and the `hashchange` that tells why it came. */
const HASH_CHANGE_MS = 50;

/**
 * Calls back when the page navigates without being loaded anew: a new history entry, or a step back or forward. Not
 * when an entry is replaced, and not for a jump within the page (`#…`). No URL is read to tell these apart.
 */
export const onNavigation = (navigated: () => void): void => {
  if (window.navigation) watchNavigation(window.navigation, navigated);
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

/** Browsers of before 2026 have no other sign of a `pushState` than the call. */
const watchHistory = (navigated: () => void): void => {
  const { pushState } = history;
  history.pushState = function (...entry) {
    const result = pushState.apply(this, entry);
    navigated();
    return result;
  };

  let timer = 0;
  addEventListener('popstate', ({ isTrusted }) => {
    // Routers make events of their own to tell themselves of a pushState.
    if (isTrusted) timer = setTimeout(navigated, HASH_CHANGE_MS);
  });
  addEventListener('hashchange', () => clearTimeout(timer));
};
