import { sql } from 'slonik';

const MOST_NOT_SWEPT = 5_000;

/**
 * The deliveries that have expired and that the sweep of each minute has not marked yet, as a table `webhook_delivery`: the first
 * ones of all partners, in the order of the sweep. Millions of one partner may expire at one moment; while the sweep takes its
 * minutes for them, the pages of others must not read them all.
 * @param at ISO 8601
 */
export const notSwept = (at: string) => sql.fragment`
  (select * from read.webhook_delivery
   where state <> 'expired' and payload_expires_at <= ${at}::timestamptz
   order by payload_expires_at, delivery_id limit ${MOST_NOT_SWEPT}) webhook_delivery`;
