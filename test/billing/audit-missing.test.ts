import { describe, expect, it } from 'vitest';
import type { Entry } from '../../domain/billing/audit-ledger.ts';
import { checkMissing, type Receipt, type UnsweptReveal } from '../../domain/billing/audit-reveals.ts';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import { ANNA } from '../lookup/lookup-events.ts';

const NOW = Date.parse('2026-06-01T12:00:00.000Z');
const REVEAL = '11111111-1111-4111-8111-111111111111';
const UP_TO = 100n;

const entry = (over: Partial<Entry> = {}): Entry => ({
  number: 0,
  partner_id: ANNA,
  reveal_id: REVEAL,
  tracker_id: REVEAL,
  key_id: 'key_a',
  user_id: null,
  completed_at: isoTime(NOW - DAY),
  units: 1,
  position: 50n,
  digest: 'a'.repeat(64),
  ...over,
});
const requested = { created_at: isoTime(NOW - HOUR), expires_at: isoTime(NOW + DAY) };
const receipt = (over: Partial<Receipt> = {}): Receipt => ({
  revision: 0,
  position: 50n,
  requested,
  completed: null,
  ...over,
});
const row = (over: Partial<UnsweptReveal> = {}): UnsweptReveal => ({
  reveal_id: REVEAL,
  pending: false,
  expires_at: isoTime(NOW + DAY),
  last_position: 50n,
  ...over,
});

interface Given {
  readonly entries?: readonly Entry[];
  readonly receipts?: readonly Receipt[];
  readonly rows?: readonly UnsweptReveal[];
  readonly expired?: readonly string[];
}
const check = ({ entries = [], receipts = [], rows = [], expired = [] }: Given) => {
  const { differences, pending, ...counts } = checkMissing(
    ANNA,
    { entries, differences: [] },
    { byId: new Map(receipts.map((one) => [REVEAL, one])), differences: [] },
    { expired: new Set(expired), rows: new Map(rows.map((one) => [one.reveal_id, one])) },
    { now: NOW, upTo: UP_TO },
  );
  const found = differences.map(({ kind, stream }) => `${kind} ${stream.split('-')[0]}`);
  return { ...counts, pending, found };
};

describe('an entry without a receipt', () => {
  it('is a difference while nothing shows that the receipt has expired', () => {
    expect(check({ entries: [entry()] }).found).toEqual(['missing_receipt billing']);
  });
  it('is a difference for 59 days after its completion and untraceable afterwards', () => {
    const completedBefore = (days: number) =>
      check({ entries: [entry({ completed_at: isoTime(NOW - days * DAY) })] });
    expect(completedBefore(58.9).found).toEqual(['missing_receipt billing']);
    expect(completedBefore(59)).toMatchObject({ expired: 0, untraceable: 1, found: [] });
  });
  it('is correct when its id is listed as expired', () => {
    expect(check({ entries: [entry()], expired: [REVEAL] })).toMatchObject({
      expired: 1,
      untraceable: 0,
      found: [],
    });
  });
  it('is correct while a sweep has deleted the receipt and not yet recorded its id', () => {
    const swept = row({ expires_at: isoTime(NOW) });
    expect(check({ entries: [entry()], rows: [swept] })).toMatchObject({
      expired: 1,
      untraceable: 0,
      found: [],
    });
  });
  it('is left to the next audit when its reveal completed after the audited part of the log', () => {
    expect(check({ entries: [entry({ position: 101n })] }).found).toEqual([]);
  });
});

describe('a request without a completion', () => {
  it('is a difference when the read model has no row or a complete one', () => {
    expect(check({ receipts: [receipt()] }).found).toEqual(['missing_completion reveal']);
    expect(check({ receipts: [receipt()], rows: [row()] }).found).toEqual(['missing_completion reveal']);
  });
  it('is correct when the reveal is pending, or completed after the audited part of the log', () => {
    expect(check({ receipts: [receipt()], rows: [row({ pending: true })] }).found).toEqual([]);
    expect(check({ receipts: [receipt()], rows: [row({ last_position: 101n })] }).found).toEqual([]);
  });
  it('is listed as pending when the read model has it as pending, until it expires', () => {
    const pending = row({ pending: true });
    expect(check({ receipts: [receipt()], rows: [pending] }).pending).toEqual([REVEAL]);
    expect(check({ receipts: [receipt()], rows: [row({ last_position: 101n })] }).pending).toEqual([]);
    const expired = { ...pending, expires_at: isoTime(NOW) };
    expect(check({ receipts: [receipt()], rows: [expired] }).pending).toEqual([]);
  });
  it('is correct when the reveal has expired', () => {
    const expired = receipt({ requested: { ...requested, expires_at: isoTime(NOW) } });
    expect(check({ receipts: [expired] }).found).toEqual([]);
    expect(check({ receipts: [receipt()], expired: [REVEAL] }).found).toEqual([]);
  });
});

describe("a row of the receipts' read model", () => {
  it('is a difference when the store has no such reveal', () => {
    expect(check({ rows: [row()] }).found).toEqual(['missing_receipt reveal']);
    expect(check({ rows: [row({ pending: true })] }).found).toEqual(['missing_receipt reveal']);
  });
  it('is correct when the reveal has expired or came after the audited part of the log', () => {
    expect(check({ rows: [row({ expires_at: isoTime(NOW) })] }).found).toEqual([]);
    expect(check({ rows: [row({ last_position: 101n })] }).found).toEqual([]);
  });
});
