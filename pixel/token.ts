import { uuid } from './uuid.ts';

/** Spec, Limits: "Session token renewal". */
const RENEWED_AFTER_MS = 30 * 60_000;
/** The stored value: the token and the time of its last visit, milliseconds. */
const STORED = /^(\w{8}-\w{4}-\w{4}-\w{4}-\w{12}) (\d+)$/;

/**
 * Returns the token of this tab for a visit at a given time, and stores that time as the token's last visit. The
 * token is kept in sessionStorage, or in the page alone when that is unavailable.
 */
export const createTabToken = (key: string): ((now: number) => string) => {
  let inPage: string | null = null;
  let copied = isCopy();

  const read = (): string => {
    try {
      return inPage ?? sessionStorage.getItem(key) ?? '';
    } catch {
      return '';
    }
  };
  const write = (text: string): void => {
    try {
      sessionStorage.setItem(key, text);
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
  const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return opener !== null && history.length === 1 && navigation?.type === 'navigate';
};
