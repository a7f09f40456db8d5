const RETRY_AFTER_MS = 1_000;

/**
 * Sends a visit, and once more after a second or two if it was not taken: the repeat has the same visit id. A text
 * makes `Content-Type: text/plain`, which needs no preflight. Nobody waits for it, and it never fails.
 */
export const send = async (collector: string, visit: string, again = true): Promise<void> => {
  let status = 0;
  try {
    const answer = await fetch(collector, {
      method: 'POST',
      body: visit,
      mode: 'cors',
      credentials: 'omit',
      // Goes on after the page has been left.
      keepalive: true,
      // Whatever the page's own policy is, its URL is none of ours.
      referrerPolicy: 'no-referrer',
    });
    status = answer.status;
  } catch {
    // No network, no server, or a policy of the page.
  }
  const taken = status !== 0 && status !== 429 && status < 500;
  if (!taken && again) setTimeout(send, RETRY_AFTER_MS * (1 + Math.random()), collector, visit, false);
};
