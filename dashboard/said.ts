/** What has just been done, by the name that a redirect carries: no text of somebody else's comes into a page. */
const DONE: Readonly<Record<string, string>> = {
  'logged-out': 'You are logged out.',
  'password-changed': 'Your password is changed. Other logins of yours have ended.',
  'key-updated': 'The limits are changed. Every process has them within a second.',
  'key-revoked': 'The key is revoked. Nothing more is answered to it.',
  'tracker-created': 'The tracker is created. Put its snippet on your pages.',
  'tracker-disabled': 'The tracker is disabled: it takes no visits until it is enabled again.',
  'tracker-enabled': 'The tracker is enabled.',
  'tracker-deleted': 'The tracker is deleted. Its sessions stay readable until they expire.',
};

export const whatWasDone = (said: string | null): string | null =>
  said !== null && Object.hasOwn(DONE, said) ? (DONE[said] ?? null) : null;
