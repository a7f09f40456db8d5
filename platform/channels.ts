/**
 * SQL: notifies while the server's queue has room. A full queue fails the whole transaction that notifies, and any login
 * can fill it: listen in an open transaction, and send. Those who wait for a notification poll as well.
 * @param channel and `payload` are SQL expressions
 */
export const notifyIfRoom = (channel: string, payload: string): string =>
  `case when pg_notification_queue_usage() < 0.5 then pg_notify(${channel}, ${payload}) end`;

/** Notified when an enrichment attempt or the check of a domain has become due, or will. */
export const DUE_CHANNEL = 'doorplate_due';
