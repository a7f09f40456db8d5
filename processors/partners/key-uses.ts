import type pg from 'pg';
import { aheadAfter } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock/clock.ts';

export interface KeyUses {
  /** Takes down that the key was used now. */
  note(key: { readonly key_id: string }): void;
  close(): Promise<void>;
}

const FLUSH_MS = 5_000;

/** Records every few seconds when keys were last used, so that owners see which keys are unused. Decides nothing. */
export const createKeyUses = ({
  pool,
  clock,
}: {
  readonly pool: pg.Pool;
  readonly clock: Clock;
}): KeyUses => {
  const used = new Set<string>();
  const flush = async (): Promise<void> => {
    if (used.size === 0) return;
    const keys = [...used];
    const now = clock.now();
    used.clear();
    await pool
      .query(
        `insert into work.key_use (key_id, used_at) select key_id, $2 from unnest($1::text[]) as k (key_id)
         order by key_id
         on conflict (key_id) do update
           set used_at = case when key_use.used_at > $3 then excluded.used_at
                              else greatest(key_use.used_at, excluded.used_at) end`,
        [keys, new Date(now), new Date(aheadAfter(now))],
      )
      // Said again at the key's next use.
      .catch(() => undefined);
  };
  const timer = setInterval(flush, FLUSH_MS).unref();
  return {
    note: ({ key_id }) => {
      used.add(key_id);
    },
    close: async () => {
      clearInterval(timer);
      await flush();
    },
  };
};
