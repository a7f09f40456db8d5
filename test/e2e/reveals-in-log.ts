/** A partner's reveals in the event log. */
import type { RecordedEvent } from '../../event-store/port.ts';

/** How often a reveal was requested, completed and billed, and with how many units. */
export interface RevealInLog {
  requested: number;
  completed: number;
  billed: number;
  units: number;
  /** Whether its result holds any data: then it has a unit. */
  hasData: boolean;
}

interface Fields {
  readonly reveal_id: string;
  readonly partner_id: string;
  readonly units: number;
  readonly result: { readonly company: object | null; readonly network: object };
}

export const revealsIn = (events: readonly RecordedEvent[], partner: string): Map<string, RevealInLog> => {
  const reveals = new Map<string, RevealInLog>();
  for (const { type, data } of events) {
    const { reveal_id, partner_id, units, result } = data as Fields;
    if (partner_id !== partner) continue;
    const known = reveals.get(reveal_id) ?? {
      requested: 0,
      completed: 0,
      billed: 0,
      units: 0,
      hasData: false,
    };
    reveals.set(reveal_id, known);
    if (type === 'reveals.RevealRequested.v1') known.requested += 1;
    if (type === 'reveals.RevealCompleted.v1') {
      known.completed += 1;
      known.hasData = [result.company ?? {}, result.network].some((fields) =>
        Object.values(fields).some((value) => value !== null),
      );
    }
    if (type === 'billing.RevealBilled.v1') {
      known.billed += 1;
      known.units += units;
    }
  }
  return reveals;
};
