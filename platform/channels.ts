import type pg from 'pg';

/**
 * Returns SQL that notifies while the server's queue has room. A full queue fails the whole notifying transaction, and any
 * login can fill it by listening in an open transaction. So listeners must poll as well.
 * @param channel and `payload` are SQL expressions
 */
export const notifyIfRoom = (channel: string, payload: string): string =>
  `case when pg_notification_queue_usage() < 0.5 then pg_notify(${channel}, ${payload}) end`;

/** Notifies when the connection's transaction commits, or at once without one. A notification may be lost, so listeners poll as well. */
export async function notify(db: Pick<pg.ClientBase, 'query'>, channel: string, payload = ''): Promise<void> {
  await db.query({ name: 'notify', text: NOTIFY, values: [channel, payload] });
}

const NOTIFY = `select ${notifyIfRoom('$1::text', '$2::text')}`;

/** Notified when an enrichment attempt or a domain check was scheduled. */
export const DUE_CHANNEL = 'doorplate_due';
/** Notified by a process that waits for the saved checkpoints of all consumers. */
export const CHECKPOINTS_CHANNEL = 'doorplate_checkpoints';
