import { keepAnchor, readLastAnchor } from '../../commands/billing/keep-anchor.ts';
import { ownContext } from '../../commands/handle.ts';
import { utcDay } from '../../domain/kernel/time.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { forEachIsolated } from '../for-each.ts';
import { type AnchoringDeps, makeAnchor } from './audit.ts';
import { withPauses } from './requested-audits.ts';

/** Time limit for the billing processor: an anchor of what the ledger has so far is good too. */
const MAX_WAIT_MS = 2_000;

/**
 * Creates the run that keeps one anchor a UTC day of every ledger with entries: those that have none of today yet. It checks
 * each chain from its first entry, with pauses, because other work runs in the same process.
 */
export function createDailyAnchors(
  deps: AnchoringDeps & {
    readonly log: Logger;
    /** Called with the partner and the UTC day when a ledger differs from its chain. */
    readonly onDifference?: (partnerId: string, day: string) => Promise<void>;
  },
): () => Promise<void> {
  const { store, clock, log } = deps;
  const paced = { ...deps, store: withPauses(store) };
  /** The UTC day of the last run for each partner. */
  const doneOn = new Map<string, string>();

  const anchor = async (partnerId: string, today: string): Promise<void> => {
    const last = await readLastAnchor(store, partnerId);
    if (last !== null && last.made_at.slice(0, 10) >= today) return;
    const made = await makeAnchor(paced, partnerId, MAX_WAIT_MS);
    if (made !== null) return await keepAnchor(store, made, ownContext(clock, partnerId));
    log.error(
      { partner_id: partnerId },
      'a ledger differs from its chain: no anchor is kept; doorplate audit billing names the differences',
    );
    await deps.onDifference?.(partnerId, today);
  };

  return async () => {
    const today = utcDay(clock.now());
    await forEachIsolated(await partnersWithEntries(deps), async (partnerId) => {
      if (doneOn.get(partnerId) === today) return;
      await anchor(partnerId, today);
      doneOn.set(partnerId, today);
    });
  };
}

async function partnersWithEntries({ pool }: Pick<AnchoringDeps, 'pool'>): Promise<string[]> {
  const { rows } = await pool.query<{ partner_id: string }>(`
    select partner_id from read.partner p
    where exists (select from read.reveal_unit u where u.partner_id = p.partner_id and u.ledger_number is not null)
    order by partner_id`);
  return rows.map(({ partner_id }) => partner_id);
}
