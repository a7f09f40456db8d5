import type { DashboardKey, KeyDeps } from '../dashboard/pages/keys.ts';
import { isoTime } from '../domain/kernel/time.ts';
import { DEFAULT_LIMITS } from '../domain/partners/ceilings.ts';
import type { Position } from '../event-store/port.ts';
import {
  findKey,
  findPartner,
  type KeyRow,
  listKeyUses,
  listLatestKeys,
} from '../queries/partners/partners.ts';
import { createKeyChanges } from '../write-api/partners/keys.ts';
import { visitContext } from './dashboard-context.ts';
import type { Runtime } from './runtime.ts';

/** A page with ten thousand keys would block the event loop for a third of a second. */
const ENDED_SHOWN = 50;

/** PostgreSQL refuses a NUL, which a path may hold. */
const KEY_ID = /^[\w-]{1,100}$/;

const withUses = async (db: Runtime['db'], keys: readonly KeyRow[]): Promise<DashboardKey[]> => {
  const uses = await listKeyUses(
    db,
    keys.map(({ key_id }) => key_id),
  );
  return keys.map((key) => ({ ...key, used_at: uses.get(key.key_id) ?? null }));
};

/** Reads and changes the keys that the dashboard shows. */
export const dashboardKeys = (
  { store, db, clock }: Runtime,
  ownWrite: (position: Position | null) => Promise<unknown>,
  admitChange: (partnerId: string) => Promise<boolean>,
): KeyDeps => {
  const changes = createKeyChanges({ store, projected: ownWrite, admitChange });
  return {
    ceilingsOf: async (partnerId) => {
      const partner = await findPartner(db, partnerId);
      if (partner === null) throw new TypeError('the partner of a logged-in user does not exist');
      return partner;
    },
    usualLimits: DEFAULT_LIMITS,
    list: async (partnerId) =>
      withUses(db, await listLatestKeys(db, partnerId, isoTime(clock.now()), ENDED_SHOWN)),
    find: async (partnerId, keyId) => {
      const key = KEY_ID.test(keyId) ? await findKey(db, keyId) : null;
      return key?.partner_id === partnerId ? ((await withUses(db, [key]))[0] ?? null) : null;
    },
    create: (visit, { name, limits }) =>
      changes.create(visit.user.partner_id, name, limits, visitContext(visit)),
    update: (visit, keyId, limits) =>
      changes.update(visit.user.partner_id, keyId, limits, visitContext(visit)),
    revoke: (visit, keyId) => changes.revoke(visit.user.partner_id, keyId, visitContext(visit)),
  };
};
