/** The suggested least delay between polls, seconds. */
export const POLL_SECONDS = 15;
