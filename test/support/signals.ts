import { randomUUID } from 'node:crypto';
import { isoTime } from '../../domain/kernel/time.ts';

/** An entry of `POST /signals`. */
export type SentSignal = Readonly<Record<string, unknown>>;

/** A valid entry, observed at an instant, with the given fields replaced. */
export const signal = (at: number, over: SentSignal = {}): SentSignal => ({
  event_id: randomUUID(),
  ip: '8.8.4.4',
  email_domain: 'acme.io',
  evidence: 'submitted',
  site: 'shop.acme-customer.com',
  installation_id: 'installation-1',
  page_run_id: randomUUID(),
  occurred_at: isoTime(at),
  ...over,
});
