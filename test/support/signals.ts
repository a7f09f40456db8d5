import { randomUUID } from 'node:crypto';
import { isoTime } from '../../domain/kernel/time.ts';

/** An entry of `POST /signals`. */
export type SentSignal = Readonly<Record<string, unknown>>;

/** One that is right, seen at an instant, with what matters to a test in the place of the rest. */
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
