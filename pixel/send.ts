const RETRY_AFTER_MS = 1_000;

/**
 * Sends a visit, and once more after a second or two if it was not accepted: the repeat has the same visit id. A text
 * body makes `Content-Type: text/plain`, which needs no preflight. It does not block the page and never fails.
 */
export const send = async (collector: string, visit: string, again = true): Promise<void> => {
  let status = 0;
  try {
    const answer = await fetch(collector, {
      method: 'POST',
      body: visit,
      mode: 'cors',
      credentials: 'omit',
      // Continues after the page has been left.
      keepalive: true,
      // Sends no URL of the page, whatever the page's own policy is.
      referrerPolicy: 'no-referrer',
    });
    status = answer.status;
  } catch {
    // No network, no server, or a policy of the page.
  }
  const taken = status !== 0 && status !== 429 && status < 500;
  if (!taken && again) setTimeout(send, RETRY_AFTER_MS * (1 + Math.random()), collector, visit, false);
};
