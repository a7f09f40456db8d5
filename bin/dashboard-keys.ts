import { createKey, newApiKey, revokeKey, updateKey } from '../commands/partners/manage-partner.ts';
import type { KeyLimitValues } from '../dashboard/pages/key-form.ts';
import type { DashboardKey, KeyDeps } from '../dashboard/pages/keys.ts';
import { DEFAULT_LIMITS } from '../domain/partners/default-limits.ts';
import { keyLimitsSchema } from '../domain/partners/events.ts';
import type { PartnerRefusal } from '../domain/partners/partner.ts';
import type { Position } from '../event-store/port.ts';
import {
  findKey,
  findPartner,
  type KeyRow,
  listKeyUses,
  listLatestKeys,
} from '../queries/partners/partners.ts';
import { visitContext } from './dashboard-context.ts';
import type { Runtime } from './runtime.ts';

/** The values stand beside the form's fields. */
const ABOVE = 'is above the ceiling that the operator has set for this partner';

const MESSAGES: Record<PartnerRefusal | 'invalid_limits', string> = {
  ceiling_requests_per_second: `The number of requests a second ${ABOVE}.`,
  ceiling_new_enrichments_per_day: `The number of new enrichments a day ${ABOVE}.`,
  ceiling_pending_enrichments: `The number of pending enrichments ${ABOVE}.`,
  ceiling_company_signals: 'The operator has not allowed company signals for this partner.',
  ceiling_keys: 'The partner has as many keys as the operator allows. Revoke one first.',
  invalid_name: 'A name has 1 to 100 characters.',
  invalid_limits: 'A limit is no whole number in its range, or the time is none.',
  key_name_taken: 'Another key has this name.',
  key_not_found: 'There is no such key.',
  key_revoked: 'The key is revoked.',
  partner_exists: 'There is such a partner.',
  partner_not_found: 'There is no such partner.',
};

const refused = (code: PartnerRefusal | 'invalid_limits') => {
  const status = code === 'key_not_found' ? 404 : code.startsWith('invalid') ? 400 : 409;
  return { ok: false, status, code, message: MESSAGES[code] } as const;
};

/** A page with ten thousand keys would block the event loop for a third of a second. */
const REVOKED_SHOWN = 50;

const withUses = async (db: Runtime['db'], keys: readonly KeyRow[]): Promise<DashboardKey[]> => {
  const uses = await listKeyUses(
    db,
    keys.map(({ key_id }) => key_id),
  );
  return keys.map((key) => ({ ...key, used_at: uses.get(key.key_id) ?? null }));
};

/** Manages keys for the dashboard with the same commands as the command line. */
export const dashboardKeys = (
  { store, db }: Runtime,
  ownWrite: (position: Position | null) => Promise<unknown>,
): KeyDeps => ({
  ceilingsOf: async (partnerId) => {
    const partner = await findPartner(db, partnerId);
    if (partner === null) throw new TypeError('the partner of a logged-in user does not exist');
    return partner;
  },
  usualLimits: DEFAULT_LIMITS,

  list: async (partnerId): Promise<DashboardKey[]> =>
    withUses(db, await listLatestKeys(db, partnerId, REVOKED_SHOWN)),

  find: async (partnerId, keyId): Promise<DashboardKey | null> => {
    const key = await findKey(db, keyId);
    return key?.partner_id === partnerId ? ((await withUses(db, [key]))[0] ?? null) : null;
  },

  create: async (visit, { name, limits }) => {
    const checked = checkedLimits(limits);
    if (checked === null) return refused('invalid_limits');
    const { partner_id } = visit.user;
    const wanted = { partner_id, name, limits: checked, api_key: newApiKey(), by: 'user' } as const;
    const made = await createKey(store, wanted, visitContext(visit));
    if (!made.ok) return refused(made.refusal);
    await ownWrite(made.value.position);
    return { ok: true, api_key: made.value.api_key };
  },

  update: async (visit, key_id, limits) => {
    const checked = checkedLimits(limits);
    if (checked === null) return refused('invalid_limits');
    const { partner_id } = visit.user;
    const change = { partner_id, key_id, limits: checked, by: 'user' } as const;
    const updated = await updateKey(store, change, visitContext(visit));
    if (!updated.ok) return refused(updated.refusal);
    await ownWrite(updated.value.position);
    return { ok: true };
  },

  revoke: async (visit, key_id) => {
    const { partner_id } = visit.user;
    const revoked = await revokeKey(store, { partner_id, key_id }, visitContext(visit));
    if (!revoked.ok) return refused(revoked.refusal);
    await ownWrite(revoked.value.position);
    return { ok: true };
  },
});

/** The same bound as the command line's. */
const LARGEST = 1_000_000_000;

const checkedLimits = (limits: KeyLimitValues): KeyLimitValues | null => {
  const checked = keyLimitsSchema.safeParse(limits);
  if (!checked.success) return null;
  const { requests_per_second, new_enrichments_per_day, pending_enrichments, expires_at } = checked.data;
  const numbers = [requests_per_second, new_enrichments_per_day ?? 0, pending_enrichments];
  if (numbers.some((number) => number > LARGEST)) return null;
  return { ...checked.data, expires_at: expires_at && new Date(expires_at).toISOString() };
};
