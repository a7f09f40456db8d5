import type { CommandContext } from '../../commands/handle.ts';
import { createKey, newApiKey, revokeKey, updateKey } from '../../commands/partners/manage-partner.ts';
import { hasUsualYear } from '../../domain/kernel/time.ts';
import { type KeyLimits, keyLimitsSchema } from '../../domain/partners/events.ts';
import { DEFAULT_LIMITS, LARGEST_LIMIT, type PartnerRefusal } from '../../domain/partners/partner.ts';
import type { EventStore, Position } from '../../event-store/port.ts';

/** The values stand beside the form's fields. */
const ABOVE = 'is above the ceiling that the operator has set for this partner';

type Refusal = PartnerRefusal | 'invalid_limits' | 'invalid_expiry' | 'rate_limit';

const MESSAGES: Record<Refusal, string> = {
  ceiling_requests_per_second: `The number of requests a second ${ABOVE}.`,
  ceiling_new_enrichments_per_day: `The number of new enrichments a day ${ABOVE}.`,
  ceiling_pending_enrichments: `The number of pending enrichments ${ABOVE}.`,
  ceiling_company_signals: 'The operator has not allowed company signals for this partner.',
  ceiling_keys: 'The partner has as many keys as the operator allows. Revoke one first.',
  invalid_name: 'A name has 1 to 100 characters.',
  invalid_limits: 'A limit is no whole number in its range, or the time is none.',
  invalid_expiry: 'The key would have expired already. Choose a time in the future, or none.',
  key_name_taken: 'Another key has this name.',
  key_not_found: 'There is no such key.',
  key_revoked: 'The key is revoked.',
  partner_exists: 'There is such a partner.',
  partner_not_found: 'There is no such partner.',
  partner_deleted: 'The partner is deleted.',
  partner_not_deleted: 'The partner is not deleted.',
  rate_limit: 'The partner has changed its trackers, domains and keys too often today. Try again tomorrow.',
};

function refused(code: Refusal) {
  const status =
    code === 'rate_limit' ? 429 : code === 'key_not_found' ? 404 : code.startsWith('invalid') ? 400 : 409;
  return { ok: false, status, code, message: MESSAGES[code] } as const;
}

interface KeyDeps {
  readonly store: EventStore;
  /** Waits until the change can be read. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Counts a change of a partner. @returns whether it may be made */
  readonly admitChange: (partnerId: string) => Promise<boolean>;
}

/** Changes keys for a partner's users with the same commands as the command line. A key may be revoked at any rate. */
export const createKeyChanges = ({ store, projected, admitChange }: KeyDeps) => ({
  usualLimits: DEFAULT_LIMITS,

  create: async (partner_id: string, name: string, limits: KeyLimits, context: CommandContext) => {
    const checked = checkedLimits(limits);
    if (checked === null) return refused('invalid_limits');
    if (hasExpired(checked, context)) return refused('invalid_expiry');
    if (!(await admitChange(partner_id))) return refused('rate_limit');
    const wanted = { partner_id, name, limits: checked, api_key: newApiKey(), by: 'user' } as const;
    const made = await createKey(store, wanted, context);
    if (!made.ok) return refused(made.refusal);
    await projected(made.value.position);
    return { ok: true, api_key: made.value.api_key } as const;
  },

  update: async (partner_id: string, key_id: string, limits: KeyLimits, context: CommandContext) => {
    const checked = checkedLimits(limits);
    if (checked === null) return refused('invalid_limits');
    if (hasExpired(checked, context)) return refused('invalid_expiry');
    if (!(await admitChange(partner_id))) return refused('rate_limit');
    const updated = await updateKey(store, { partner_id, key_id, limits: checked, by: 'user' }, context);
    if (!updated.ok) return refused(updated.refusal);
    await projected(updated.value.position);
    return { ok: true } as const;
  },

  revoke: async (partner_id: string, key_id: string, context: CommandContext) => {
    const revoked = await revokeKey(store, { partner_id, key_id }, context);
    if (!revoked.ok) return refused(revoked.refusal);
    await projected(revoked.value.position);
    return { ok: true } as const;
  },
});

const hasExpired = ({ expires_at }: KeyLimits, { at }: CommandContext): boolean =>
  expires_at !== null && Date.parse(expires_at) <= at;

function checkedLimits(limits: KeyLimits): KeyLimits | null {
  const checked = keyLimitsSchema.safeParse(limits);
  if (!checked.success) return null;
  const { requests_per_second, new_enrichments_per_day, pending_enrichments, expires_at } = checked.data;
  const numbers = [requests_per_second, new_enrichments_per_day ?? 0, pending_enrichments];
  if (numbers.some((number) => number > LARGEST_LIMIT)) return null;
  const expiry = expires_at && new Date(expires_at).toISOString();
  return expiry === null || hasUsualYear(expiry) ? { ...checked.data, expires_at: expiry } : null;
}

export type KeyChanges = ReturnType<typeof createKeyChanges>;
