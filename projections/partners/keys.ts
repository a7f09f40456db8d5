import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import {
  type PartnerEvent,
  partnerEvents,
  type UserEvent,
  userEvents,
} from '../../domain/partners/events.ts';
import type { Projection } from '../projection.ts';

/** Projects partners, their keys and users. Row by row, because these events are rare. */
export const partners: Projection = {
  name: 'partners',
  tables: ['partner', 'api_key', 'user_account'],
  types: Object.keys({ ...partnerEvents, ...userEvents }),
  async apply(events, db) {
    for (const stored of events) {
      const event = readEvent(partnerEvents, stored);
      if (event) {
        await applyOne(event, db);
        await markChanged(event, String(stored.position), db);
      }
      const ofUser = readEvent(userEvents, stored);
      if (ofUser) await applyToUser(ofUser, db);
    }
  },
};

async function markChanged({ type, data }: PartnerEvent, position: string, db: pg.ClientBase): Promise<void> {
  if (type === 'partners.PartnerDeleted.v1') {
    const values = [data.partner_id, position];
    await db.query('update api_key set changed_position = $2 where partner_id = $1', values);
  }
  if ('key_id' in data) {
    await db.query('update api_key set changed_position = $2 where key_id = $1', [data.key_id, position]);
  } else if ('partner_id' in data) {
    const values = [data.partner_id, position];
    await db.query('update partner set changed_position = $2 where partner_id = $1', values);
  }
}

const KEY_LIMITS = `requests_per_second, new_enrichments_per_day, pending_enrichments, company_signals, expires_at`;

const CEILINGS = `requests_per_second, new_enrichments_per_day, pending_enrichments, keys, domains, company_signals`;

async function applyOne({ type, data }: PartnerEvent, db: pg.ClientBase): Promise<void> {
  switch (type) {
    case 'partners.PartnerCreated.v1':
      await db.query(
        'insert into partner (partner_id, name, created_at) values ($1, $2, $3) on conflict do nothing',
        [data.partner_id, data.name, data.created_at],
      );
      return;
    case 'partners.KeyCreated.v1':
      // A key whose revocation the partner no longer remembers stays revoked.
      await db.query(
        `insert into api_key (${KEY_LIMITS}, key_id, partner_id, name, hash, created_at)
         select ${KEY_LIMITS}, key_id, partner_id, name, hash, created_at
         from json_populate_record(null::api_key, $1)
         on conflict (key_id) do nothing`,
        [JSON.stringify(data)],
      );
      return;
    case 'partners.KeyUpdated.v1':
      await db.query(
        `update api_key set (${KEY_LIMITS}) =
           (select ${KEY_LIMITS} from json_populate_record(null::api_key, $2))
         where key_id = $1`,
        [data.key_id, JSON.stringify(data)],
      );
      return;
    case 'partners.KeyRevoked.v1':
      await db.query('update api_key set revoked_at = $2 where key_id = $1', [data.key_id, data.revoked_at]);
      return;
    case 'partners.CeilingsSet.v1':
      await db.query(
        `update partner set (${CEILINGS}) =
           (select ${CEILINGS} from json_populate_record(null::partner, $2))
         where partner_id = $1`,
        [data.partner_id, JSON.stringify(data)],
      );
      return;
    case 'partners.PartnerSuspended.v1':
      await setState(db, data.partner_id, 'suspended_at = $2', data.suspended_at);
      return;
    case 'partners.PartnerResumed.v1':
      await db.query('update partner set suspended_at = null where partner_id = $1', [data.partner_id]);
      return;
    case 'partners.PartnerDeleted.v1':
      await setState(db, data.partner_id, DELETED, data.deleted_at);
      await db.query('update api_key set revoked_at = $2 where partner_id = $1 and revoked_at is null', [
        data.partner_id,
        data.deleted_at,
      ]);
      return;
    case 'partners.PartnerEnded.v1':
      await setState(db, data.partner_id, 'ended_at = coalesce(ended_at, $2)', data.ended_at);
      return;
    case 'partners.PartnerSnapshotted.v1':
      return;
    default:
      unreachable(type);
  }
}

/** Whatever refuses a suspended partner refuses a deleted one. Names are unique, so a deleted partner's makes room for another. */
const DELETED = `deleted_at = $2, suspended_at = coalesce(suspended_at, $2), name = name || ' (deleted ' || partner_id || ')'`;

const setState = (db: pg.ClientBase, partnerId: string, assignments: string, at: string) =>
  db.query(`update partner set ${assignments} where partner_id = $1`, [partnerId, at]);

async function applyToUser({ type, data }: UserEvent, db: pg.ClientBase): Promise<void> {
  switch (type) {
    case 'partners.UserCreated.v1':
      await db.query(
        'insert into user_account (user_id, partner_id, name, created_at) values ($1, $2, $3, $4) on conflict do nothing',
        [data.user_id, data.partner_id, data.name, data.created_at],
      );
      return;
    case 'partners.UserRemoved.v1':
      await db.query('update user_account set removed_at = $2 where user_id = $1', [
        data.user_id,
        data.removed_at,
      ]);
      return;
    case 'partners.UserReleased.v1':
      await db.query('delete from user_account where user_id = $1', [data.user_id]);
      return;
    case 'partners.UserPasswordReset.v1':
    case 'partners.UserPasswordChanged.v1':
      return;
    default:
      unreachable(type);
  }
}
