import { billingEvents, billingStream } from '../../domain/billing/events.ts';
import { type Billable, type Ledger, ledgerAfter, ledgerDecider } from '../../domain/billing/ledger.ts';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import type { EventStore, NewEvent, Revision } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, conflictRetries, toNewEvents } from '../handle.ts';

/** A completed reveal and the trace context of its ledger entry. */
export interface RevealToBill {
  readonly reveal: Billable;
  readonly context: CommandContext;
}

/** The ledger's last event is not a ledger entry. */
export class LedgerBroken extends Error {}

/**
 * Appends completed reveals of one partner to its ledger in log order, in one append. Idempotent: reveals at or
 * before the log position of the last entry are skipped (architecture, rule 2).
 * @throws LedgerBroken, and the port's errors; OutcomeUnknown when the append may have happened; StoreBusy while the
 *   stream has entries that cannot be read, because they are not replicated yet or were removed from the database
 */
export async function billReveals(
  store: EventStore,
  partnerId: string,
  completions: readonly RevealToBill[],
): Promise<void> {
  const stream = billingStream(partnerId);
  let { state, last } = await readEnd(store, stream);
  const afterConflict = conflictRetries();
  for (;;) {
    const events = entriesFor(completions, state);
    if (events.length === 0) return;
    try {
      await appendSafely(store, stream, last ?? 'no_stream', events);
      return;
    } catch (error) {
      await afterConflict(error);
      ({ state, last } = await readEnd(store, stream));
    }
  }
}

/** Reads only the last entry, which shows after a crash whether the append happened (architecture, rule 2). */
async function readEnd(store: EventStore, stream: string): Promise<{ state: Ledger; last: Revision | null }> {
  for await (const stored of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
    const entry = readEvent(billingEvents, stored);
    if (entry === null) throw new LedgerBroken(`${stored.type} at revision ${stored.revision} of ${stream}`);
    return { state: ledgerAfter(stored.revision, entry), last: stored.revision };
  }
  return { state: ledgerDecider.initial, last: null };
}

function entriesFor(completions: readonly RevealToBill[], from: Ledger): NewEvent[] {
  let state = from;
  return completions.flatMap(({ reveal, context }) => {
    const decision = ledgerDecider.decide({ type: 'Bill', reveal }, state);
    if (!decision.ok) return unreachable(decision.refusal);
    state = decision.value.reduce(ledgerDecider.evolve, state);
    return toNewEvents(billingEvents, decision.value, context);
  });
}
