import { z } from 'zod';
import { type PublicAddress, parsePublicAddress } from '../kernel/address.ts';
import { hostName } from '../kernel/host-name.ts';
import { isText } from '../kernel/text.ts';

/** What another system of the operator saw: somebody at this address used this e-mail domain on this site. */
export interface Observation {
  readonly event_id: string;
  readonly ip: PublicAddress;
  /** Lower case, IDNs as punycode; so is `site`. */
  readonly email_domain: string;
  readonly submitted: boolean;
  readonly site: string;
  readonly installation_id: string;
  readonly page_run_id: string | null;
  /** Milliseconds. */
  readonly occurred_at: number;
}

/** Decisions, CompanySignals. */
const MOST_SIGNALS = 1_000;

export type ReadSignals =
  | { readonly ok: true; readonly value: readonly Observation[] }
  /** `index`: of the first entry that is wrong; null: the batch is no batch. `field`: null where its shape is wrong. */
  | { readonly ok: false; readonly index: number | null; readonly field: string | null };

/** Reads a whole batch as it was sent: one wrong entry refuses it. */
export const readSignals = (body: unknown): ReadSignals => {
  if (!isRecord(body) || !hasExactly(body, ['signals']) || !Array.isArray(body.signals)) {
    return { ok: false, index: null, field: null };
  }
  const entries: readonly unknown[] = body.signals;
  const value: Observation[] = [];
  for (const [index, entry] of entries.entries()) {
    if (index === MOST_SIGNALS) return { ok: false, index, field: null };
    const read = readEntry(entry);
    if (typeof read === 'string') return { ok: false, index, field: read };
    if (read === null) return { ok: false, index, field: null };
    value.push(read);
  }
  return { ok: true, value };
};

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

/** Visible ASCII but `@`, so that a thousand of the longest still fit into one append. */
const EVENT_ID = /^[\x21-\x3f\x41-\x7e]{1,128}$/;
const LONGEST_LABEL = 200;
const instant = z.iso.datetime({ offset: true });

/** The entry; or the name of the first field that is wrong; null where it has other fields than it should. */
const readEntry = (entry: unknown): Observation | Field | null => {
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
};

/** Only the domain of an address is ever sent: whatever may be a whole one is refused. */
const isLabel = (sent: unknown): sent is string =>
  typeof sent === 'string' && isText(sent, LONGEST_LABEL) && !sent.includes('@');

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasExactly = (record: object, fields: readonly string[]): boolean =>
  Object.keys(record).length === fields.length && fields.every((field) => Object.hasOwn(record, field));
