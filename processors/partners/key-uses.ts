import { aheadAfter } from '../../domain/kernel/time.ts';
import { runSoon } from '../../platform/clock/waiting.ts';
import type { ProcessorDeps } from '../deps.ts';

const FLUSH_MS = 5_000;

/** Records every few seconds when keys were last used, so that owners see which keys are unused. Decides nothing. */
export function createKeyUses({ pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>) {
  /** When each key was last used, milliseconds. */
  const used = new Map<string, number>();
  const flush = async (): Promise<void> => {
    if (used.size === 0) return;
    const [keys, times] = [[...used.keys()], [...used.values()].map((at) => new Date(at))];
    used.clear();
    await pool
      .query(
        `insert into work.key_use (key_id, used_at) select key_id, used_at from unnest($1::text[], $2::timestamptz[]) as k (key_id, used_at)
         order by key_id
         on conflict (key_id) do update
           set used_at = case when key_use.used_at > $3 then excluded.used_at
                              else greatest(key_use.used_at, excluded.used_at) end`,
        [keys, times, new Date(aheadAfter(clock.now()))],
      )
      // Said again at the key's next use.
      .catch(() => undefined);
  };
  const flushing = runSoon(flush, FLUSH_MS);
  return {
    /** Takes down that the key was used now. */
    note: ({ key_id }: { readonly key_id: string }): void => {
      used.set(key_id, clock.now());
      flushing.soon();
    },
    close: async (): Promise<void> => {
      flushing.cancel();
      await flush();
    },
  };
}
