import { z } from 'zod';
import { type PublicAddress, parsePublicAddress } from '../kernel/address.ts';
import { hostName, isText } from '../kernel/text.ts';

/** An observation of another system of the operator: a visitor at this address used this e-mail domain on this site. */
export interface Observation {
  readonly event_id: string;
  readonly ip: PublicAddress;
  /** Lower case, IDNs as punycode; also `site`. */
  readonly email_domain: string;
  readonly submitted: boolean;
  readonly site: string;
  readonly installation_id: string;
  readonly page_run_id: string | null;
  /** Milliseconds. */
  readonly occurred_at: number;
}

/** Contract, Company signals. */
const MAX_SIGNALS = 1_000;

export type ReadSignals =
  | { readonly ok: true; readonly value: readonly Observation[] }
  /** `index`: first invalid entry; null: the batch itself is invalid. `field`: null: the entry's shape is invalid. */
  | { readonly ok: false; readonly index: number | null; readonly field: string | null };

/** Validates a whole batch; one invalid entry rejects it. */
export function readSignals(body: unknown): ReadSignals {
  if (!isRecord(body) || !hasExactly(body, ['signals']) || !Array.isArray(body.signals)) {
    return { ok: false, index: null, field: null };
  }
  const entries: readonly unknown[] = body.signals;
  const value: Observation[] = [];
  for (const [index, entry] of entries.entries()) {
    if (index === MAX_SIGNALS) return { ok: false, index, field: null };
    const read = readEntry(entry);
    if (typeof read === 'string') return { ok: false, index, field: read };
    if (read === null) return { ok: false, index, field: null };
    value.push(read);
  }
  return { ok: true, value };
}

const FIELDS = [
  'event_id',
  'ip',
  'email_domain',
  'evidence',
  'site',
  'installation_id',
  'page_run_id',
  'occurred_at',
] as const;
type Field = (typeof FIELDS)[number];

/** Visible ASCII except `@`, so that a thousand of the longest fit into one append. */
const EVENT_ID = /^[\x21-\x3f\x41-\x7e]{1,128}$/;
const MAX_LABEL_LENGTH = 200;
const instant = z.iso.datetime({ offset: true });

/** Returns the entry, or the name of its first invalid field, or null if it lacks or adds fields. */
function readEntry(entry: unknown): Observation | Field | null {
  if (!isRecord(entry) || !hasExactly(entry, FIELDS)) return null;
  const { event_id, evidence, installation_id, page_run_id } = entry;
  if (typeof event_id !== 'string' || !EVENT_ID.test(event_id)) return 'event_id';
  const ip = typeof entry.ip === 'string' ? parsePublicAddress(entry.ip) : null;
  if (ip === null) return 'ip';
  const email_domain = typeof entry.email_domain === 'string' ? hostName(entry.email_domain) : null;
  if (email_domain === null) return 'email_domain';
  if (evidence !== 'submitted' && evidence !== 'field_only') return 'evidence';
  const site = typeof entry.site === 'string' ? hostName(entry.site) : null;
  if (site === null) return 'site';
  if (!isLabel(installation_id)) return 'installation_id';
  if (page_run_id !== null && !isLabel(page_run_id)) return 'page_run_id';
  const occurred = instant.safeParse(entry.occurred_at);
  if (!occurred.success) return 'occurred_at';
  const submitted = evidence === 'submitted';
  const occurred_at = Date.parse(occurred.data);
  return { event_id, ip, email_domain, submitted, site, installation_id, page_run_id, occurred_at };
}

/** Rejects `@`, because senders must send only the domain of an e-mail address. */
const isLabel = (sent: unknown): sent is string =>
  typeof sent === 'string' && isText(sent, MAX_LABEL_LENGTH) && !sent.includes('@');

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasExactly = (record: object, fields: readonly string[]): boolean =>
  Object.keys(record).length === fields.length && fields.every((field) => Object.hasOwn(record, field));
