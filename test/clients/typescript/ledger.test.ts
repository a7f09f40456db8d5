import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createClient, type LedgerAnchor, type LedgerEntry } from '../../../clients/typescript/src/index.ts';

/** What may have happened to a ledger; the Python client has the same cases. */
interface Change {
  readonly empty?: true;
  readonly anchors?: true;
  readonly rewritten?: true;
  readonly set?: [number, Partial<LedgerEntry>];
  readonly remove?: number;
  readonly insert?: [number, LedgerEntry];
  readonly exchange?: [number, number];
  readonly cut?: number;
  readonly renumber?: true;
  readonly anchor?: Partial<LedgerAnchor>;
  readonly totals?: number;
  readonly head?: { readonly digest: string };
}

const shared = JSON.parse(readFileSync(new URL('../ledger/cases.json', import.meta.url), 'utf8')) as {
  readonly now: string;
  readonly entries: LedgerEntry[];
  readonly rewritten: LedgerEntry[];
  readonly anchor: LedgerAnchor;
  readonly kept: LedgerAnchor[];
  readonly cases: { name: string; change: Change; expected: [string, number | null] | null }[];
};

const changed = (change: Change): LedgerEntry[] => {
  let entries = (change.empty ? [] : change.rewritten ? shared.rewritten : shared.entries).map((one) => ({
    ...one,
  }));
  if (change.set) Object.assign(entries[change.set[0]] as LedgerEntry, change.set[1]);
  if (change.remove !== undefined) entries.splice(change.remove, 1);
  if (change.insert) entries.splice(change.insert[0], 0, change.insert[1]);
  if (change.exchange) {
    const [a, b] = change.exchange.map((at) => entries[at] as LedgerEntry) as [LedgerEntry, LedgerEntry];
    entries[a.number] = { ...b, number: a.number };
    entries[b.number] = { ...a, number: b.number };
  }
  if (change.cut !== undefined) entries = entries.slice(0, change.cut);
  return change.renumber ? entries.map((one, number) => ({ ...one, number })) : entries;
};

/** A client of a service with such a ledger, which answers with pages of two. */
const clientOf = (change: Change) => {
  const entries = changed(change);
  const hasAnchor = !change.empty || change.anchors;
  const requests: string[] = [];
  const client = createClient({
    baseUrl: 'https://doorplate.example',
    apiKey: 'key',
    fetch: async (url) => {
      const asked = new URL(String(url)).searchParams;
      requests.push(String(asked));
      const month = asked.get('month') ?? shared.now;
      const own = entries.filter(({ completed_at }) => completed_at.startsWith(month));
      const from = Number(asked.get('cursor') ?? 0);
      const page = own.slice(from, from + 2);
      const last = entries.at(-1);
      const answer = {
        month,
        entries: page,
        totals: {
          entries: own.length + (change.totals ?? 0),
          units: own.reduce((sum, { units }) => sum + units, 0),
        },
        head: last ? { number: last.number, digest: last.digest, ...change.head } : null,
        anchor: hasAnchor ? { ...shared.anchor, ...change.anchor } : null,
        next_cursor: String(from + page.length),
        has_more: from + page.length < own.length,
        request_id: 'id',
      };
      return new Response(JSON.stringify(answer), { status: 200 });
    },
  });
  return { client, requests };
};

describe('verifyLedger', () => {
  it.each(shared.cases)('judges $name', async ({ change, expected }) => {
    const anchors = change.empty && !change.anchors ? [] : shared.kept;
    const { ok, difference } = await clientOf(change).client.verifyLedger({ anchors });
    expect(difference && [difference.kind, difference.number]).toEqual(expected);
    expect(ok).toBe(expected === null);
  });

  it('sums up by month of completion, in the order of the numbers', async () => {
    const numbers: number[] = [];
    const proof = await clientOf({}).client.verifyLedger({ onEntry: ({ number }) => numbers.push(number) });
    expect(numbers).toEqual([0, 1, 2, 3, 4, 5]);
    expect(proof).toMatchObject({
      entries: 6,
      units: 4,
      anchor: shared.anchor,
      publicKey: shared.anchor.public_key,
    });
    expect(proof.months).toEqual([
      { month: '2026-01', entries: 2, units: 1 },
      { month: '2026-02', entries: 1, units: 1 },
      { month: '2026-03', entries: 3, units: 2 },
    ]);
    expect(proof.head).toEqual({ number: 5, digest: shared.entries[5]?.digest });
  });

  it('finds only by a kept anchor that a ledger was made again, if the service makes its anchors again too', async () => {
    const { client } = clientOf({ rewritten: true, anchor: shared.kept[0] as LedgerAnchor });
    expect((await client.verifyLedger()).ok).toBe(true);
    expect((await client.verifyLedger({ anchors: shared.kept })).difference?.kind).toBe('anchor_missing');
  });
});

describe('ledger', () => {
  it('lists the entries of the current month, and of that month after its end too', async () => {
    const { client, requests } = clientOf({});
    const numbers: number[] = [];
    for await (const { number } of client.ledger({ limit: 2 })) numbers.push(number);
    expect(numbers).toEqual([2, 4, 5]);
    expect(requests).toEqual(['limit=2', 'month=2026-03&cursor=2&limit=2']);
  });
});
