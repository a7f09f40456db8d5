import type pg from 'pg';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import { DAY } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';

/** After this time without a login, a user's network is unknown again. */
const NETWORK_KEPT = 90 * DAY;
/** Ceiling of one user. Each login reads the table, which a user with many networks could otherwise fill. */
const MAX_NETWORKS = 1_000;

/** Stores the networks (as digests) from which users have logged in. */
export const createLoginNetworks = ({ pool, clock }: { readonly pool: pg.Pool; readonly clock: Clock }) => ({
  isKnown: async (userId: string, network: string): Promise<boolean> => {
    const { rowCount } = await pool.query(
      'select from work.login_network where user_id = $1 and network = $2 and used_at >= $3',
      [userId, network, new Date(clock.now() - NETWORK_KEPT)],
    );
    return rowCount === 1;
  },

  remember: async (userId: string, network: string): Promise<void> => {
    const now = clock.now();
    await pool.query('delete from work.login_network where used_at < $1 or used_at > $2', [
      new Date(now - NETWORK_KEPT),
      new Date(aheadAfter(now)),
    ]);
    await pool.query(
      `insert into work.login_network (user_id, network, used_at) values ($1, $2, $3)
       on conflict (user_id, network) do update set used_at = excluded.used_at`,
      [userId, network, new Date(now)],
    );
    await pool.query(
      `delete from work.login_network where user_id = $1 and network in (
         select network from work.login_network where user_id = $1 order by used_at desc offset ${MAX_NETWORKS})`,
      [userId],
    );
  },
});
