import { onNavigation } from './navigation.ts';

declare global {
  interface Document {
    /** true until a page that was loaded ahead is opened. */
    readonly prerendering?: boolean;
  }
}

/**
 * Calls back once for each page view: the page as it was loaded, what its own navigation shows, and the page as it
 * comes back from the back/forward cache. What is out of sight (a tab in the background, a prerendered page) is a view
 * when it is seen, and none if it never is.
 */
export const onEachView = (viewed: () => void): void => {
  let unseen = false;
  const look = (): void => {
    if (!unseen || document.prerendering || document.visibilityState === 'hidden') return;
    unseen = false;
    try {
      viewed();
    } catch {
      // A guest's trouble is not the page's.
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
