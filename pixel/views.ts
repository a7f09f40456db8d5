import { onNavigation } from './navigation.ts';

declare global {
  interface Document {
    /** true until a prerendered page is opened. */
    readonly prerendering?: boolean;
  }
}

/**
 * Calls back once for each page view: the loaded page, each navigation within it, and its return from the
 * back/forward cache. A hidden page (a tab in the background, a prerendered page) is a view when it becomes visible,
 * and none if it never does.
 */
export const onEachView = (viewed: () => void): void => {
  let unseen = false;
  const look = (): void => {
    if (!unseen || document.prerendering || document.visibilityState === 'hidden') return;
    unseen = false;
    try {
      viewed();
    } catch {
      // An error of the pixel must not reach the page.
    }
  };
  const begin = (): void => {
    unseen = true;
    look();
  };

  document.addEventListener('prerenderingchange', look);
  document.addEventListener('visibilitychange', look);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) begin();
  });
  begin();
  onNavigation(begin);
};
