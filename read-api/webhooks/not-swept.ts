import { sql } from 'slonik';

/**
 * The condition of deliveries that have expired and that the sweep of each minute has not marked yet. The lower bound excludes no
 * row: without it PostgreSQL estimates many such rows, as it does not know that most expired deliveries are marked, and reads an
 * endpoint's whole history.
 * @param at ISO 8601
 */
export const notSwept = (at: string) => sql.fragment`
  state <> 'expired' and payload_expires_at <= ${at}::timestamptz
  and payload_expires_at >= (select min(o.payload_expires_at) from read.webhook_delivery o where o.state <> 'expired')`;
