/** The message after a redirect, chosen by name, so that a link cannot put text into a page. */
const DONE: Readonly<Record<string, string>> = {
  'logged-out': 'You are logged out.',
  'password-changed': 'Your password is changed. Other logins of yours have ended.',
  'key-updated': 'The limits are changed. Every process has them within a second.',
  'key-revoked': 'The key is revoked. Nothing more is answered to it.',
  'tracker-created': 'The tracker is created. Put its snippet on your pages.',
  'tracker-disabled': 'The tracker is disabled: it takes no visits until it is enabled again.',
  'tracker-enabled': 'The tracker is enabled.',
  'tracker-deleted': 'The tracker is deleted. Its sessions stay readable until they expire.',
  'webhook-changed': 'The endpoint is changed.',
  'webhook-paused': 'The endpoint is paused. What is pending waits.',
  'webhook-enabled': 'The endpoint is enabled.',
  'webhook-tested': 'A test is queued. It stands here as soon as it is under way.',
  'webhook-deleted': 'The endpoint is deleted. Its history stays for 90 days.',
  'delivery-retried': 'The delivery is being attempted anew.',
  'domain-added': 'The domain is added. It becomes active once its DNS points here.',
  'domain-given-up': 'The domain is given up.',
  'audit-begun': 'The audit has begun. Its verdict stands here as soon as it is done.',
  'audit-recent': 'The last audit is recent, so no other one was begun. Try again later.',
  'audit-too-large':
    'The ledger is too large for an audit on this page. Ask whoever runs the service for one: doorplate audit billing.',
};

export const flashMessage = (flash: string | null): string | null =>
  flash !== null && Object.hasOwn(DONE, flash) ? (DONE[flash] ?? null) : null;
