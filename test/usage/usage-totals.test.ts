import { describe, expect, it } from 'vitest';
import { usageTotalsDecider } from '../../commands/usage/close-usage.ts';
import type { LookupCount, UsageEvent } from '../../domain/usage/events.ts';

const counted = (...counts: LookupCount[]): UsageEvent => ({
  type: 'usage.LookupsCounted.v1',
  data: { counts },
});
const totalUntilDone = (events: readonly UsageEvent[]): UsageEvent[] => {
  let state = events.reduce(usageTotalsDecider.evolve, usageTotalsDecider.initial);
  const written: UsageEvent[] = [];
  for (;;) {
    const decision = usageTotalsDecider.decide({ type: 'Total' }, state);
    if (!decision.ok || decision.value.length === 0) return written;
    written.push(...decision.value);
    state = decision.value.reduce(usageTotalsDecider.evolve, state);
  }
};

describe('closing a usage stream', () => {
  it('adds up by key, hour and outcome', () => {
    const totals = totalUntilDone([
      counted(['k1', '2026-03-01T10', 'company', 2, 2, 100], ['k1', '2026-03-01T10', 'error', 1, 0, 5]),
      counted(['k1', '2026-03-01T10', 'company', 3, 3, 50], ['k2', '2026-03-01T11', 'isp', 1, 1, 7]),
    ]);
    expect(totals).toEqual([
      {
        type: 'usage.LookupsTotalled.v1',
        data: {
          part: 1,
          parts: 1,
          counts: [
            ['k1', '2026-03-01T10', 'company', 5, 5, 150],
            ['k1', '2026-03-01T10', 'error', 1, 0, 5],
            ['k2', '2026-03-01T11', 'isp', 1, 1, 7],
          ],
        },
      },
    ]);
  });
  it('subtracts corrections and omits rows that they empty', () => {
    const totals = totalUntilDone([
      counted(['k1', '2026-03-01T10', 'company', 5, 4, 100], ['k1', '2026-03-01T10', 'error', 1, 0, 5]),
      {
        type: 'usage.LookupsCorrected.v1',
        data: {
          counts: [
            ['k1', '2026-03-01T10', 'company', 2, 1, 30],
            ['k1', '2026-03-01T10', 'error', 1, 0, 5],
          ],
        },
      },
    ]);
    expect(totals.map(({ data }) => 'counts' in data && data.counts)).toEqual([
      [['k1', '2026-03-01T10', 'company', 3, 3, 70]],
    ]);
  });
  it('adds up again what was corrected after it', () => {
    const before = [counted(['k1', '2026-03-01T10', 'company', 5, 4, 100])];
    const totals = totalUntilDone(before);
    const late: UsageEvent = {
      type: 'usage.LookupsCorrected.v1',
      data: { counts: [['k1', '2026-03-01T10', 'company', 1, 1, 10]] },
    };
    expect(totalUntilDone([...before, ...totals, late])).toMatchObject([
      { data: { counts: [['k1', '2026-03-01T10', 'company', 4, 3, 90]] } },
    ]);
  });
  it('resumes when it was killed between two parts, and the totals alone equal all events', () => {
    const many = Array.from(
      { length: 12_000 },
      (_, n): LookupCount => [`k${n}`, '2026-03-01T10', 'isp', 1, 1, n],
    );
    const events = [counted(...many), counted(...many)];
    const totals = totalUntilDone(events);
    expect(totals.map(({ data }) => 'part' in data && data.part)).toEqual([1, 2, 3]);
    expect(totalUntilDone([...events, ...totals.slice(0, 1)])).toEqual(totals.slice(1));
    const alone = totals.reduce(usageTotalsDecider.evolve, usageTotalsDecider.initial);
    const all = events.reduce(usageTotalsDecider.evolve, usageTotalsDecider.initial);
    expect(alone.counts).toEqual(all.counts);
  });
  it('appends nothing for an empty stream', () => {
    expect(totalUntilDone([])).toEqual([]);
  });
});
