import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  acceptInvitation,
  changeRole,
  invite,
  removeMember,
} from '../../../commands/partners/manage-team.ts';
import { createUser } from '../../../commands/partners/manage-user.ts';
import { teamStream } from '../../../domain/partners/team.ts';
import type { EventStore } from '../../../event-store/port.ts';
import { all, type SuiteContext } from './context.ts';

const context = { correlationId: 'a test', causationId: 'a test', at: Date.now() };

const aUser = async (store: EventStore, partner_id: string): Promise<string> => {
  const made = await createUser(store, { partner_id, name: `user ${randomUUID()}` }, context);
  if (!made.ok) throw new Error(made.refusal);
  return made.value.user_id;
};

/** What a team decides on its one stream, from two processes at once. */
export const teams = ({ open }: SuiteContext): void => {
  describe('a team', () => {
    it('keeps one owner when all are lowered and removed at once', async () => {
      const stores = [open(), open()] as const;
      for (let round = 0; round < 5; round += 1) {
        const partner_id = randomUUID();
        const owners = [await aUser(stores[0], partner_id), await aUser(stores[1], partner_id)];
        const memberOf = (user_id: string) => ({ partner_id, user_id, role: 'owner', owners }) as const;
        const outcomes = await Promise.all([
          changeRole(stores[0], memberOf(owners[0] ?? ''), 'member', context),
          removeMember(stores[1], memberOf(owners[1] ?? ''), context),
        ]);
        expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
        expect(outcomes.find(({ ok }) => !ok)).toEqual({ ok: false, refusal: 'last_owner' });
        expect(await all(stores[0].readStream(teamStream(partner_id)))).toHaveLength(1);
      }
    });

    it('takes one of two who accept the same invitation at once', async () => {
      const stores = [open(), open()] as const;
      const partner_id = randomUUID();
      const made = await invite(stores[0], { partner_id, role: 'member', note: '' }, context);
      expect(made.ok).toBe(true);
      const [invitation] = (await all(stores[0].readStream(teamStream(partner_id)))).map(({ data }) => data);
      const { invitation_id } = invitation as { invitation_id: string };
      const outcomes = await Promise.all(
        stores.map((store) =>
          acceptInvitation(
            store,
            { partner_id, invitation_id, role: 'member', name: `user ${randomUUID()}` },
            context,
          ),
        ),
      );
      expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
      expect(outcomes.find(({ ok }) => !ok)).toEqual({ ok: false, refusal: 'invitation_used' });
    });
  });
};
