import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createChainCheck } from '../../domain/billing/audit-ledger.ts';
import type { BillingEvent } from '../../domain/billing/events.ts';
import { digestOf, ledgerDecider } from '../../domain/billing/ledger.ts';
import { ANNA, BERT } from '../lookup/lookup-events.ts';
import { verify } from '../support/verifier.ts';

const page = await readFile(fileURLToPath(new URL('../../docs/auditing.md', import.meta.url)), 'utf8');
const block = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n(.*?)\\n\`\`\``, 's').exec(page)?.[1] ?? '';

type Entry = BillingEvent['data'];
type Numbered = Entry & { readonly number: number };

describe('docs/auditing.md', () => {
  it("defines the ledger's digest by a correct example", async () => {
    const { number, ...entry }: Numbered = JSON.parse(block('json'));
    expect(createHash('sha256').update(block('text'), 'utf8').digest('hex')).toBe(entry.digest);
    expect(digestOf(number, entry)).toBe(entry.digest);
    expect(await verify(entry.partner_id, [{ number, ...entry }])).toEqual({
      code: 0,
      stdout: '2026-03 1\nOK\n',
    });
  });

  it('lists every difference that an audit can report', async () => {
    const source = await readFile(
      fileURLToPath(new URL('../../domain/billing/audit-ledger.ts', import.meta.url)),
      'utf8',
    );
    const union = /type DifferenceKind =(.*?);/s.exec(source)?.[1] ?? '';
    const kinds = [...union.matchAll(/'(\w+)'/g)].map(([, kind]) => kind);
    const listed = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind);
    expect(listed).toEqual(kinds);
  });
});

const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;

const goodLedger = (length: number): Numbered[] => {
  let state = ledgerDecider.initial;
  return Array.from({ length }, (_, number) => {
    const decision = ledgerDecider.decide(
      {
        type: 'Bill',
        reveal: {
          partner_id: ANNA,
          reveal_id: id(number),
          tracker_id: id(0),
          key_id: number % 3 === 0 ? null : 'key_a',
          user_id: number % 3 === 0 ? 'user_é' : null,
          completed_at: `2026-0${1 + (number % 3)}-01T00:00:00.000Z`,
          billable: number % 2 === 0,
          position: BigInt(number + 1) * 10n ** 15n,
        },
      },
      state,
    );
    const [entry] = decision.ok ? decision.value : [];
    if (!entry) throw new Error('each has its entry');
    state = ledgerDecider.evolve(state, entry);
    return { number, ...entry.data };
  });
};

/** The audit's first difference in the words of the verifier. */
const audited = (entries: readonly Numbered[]): string => {
  const stored = entries.map(({ number, ...data }) => ({
    revision: number,
    position: 10n ** 21n,
    type: 'billing.RevealBilled.v1',
    data,
  }));
  const { add, chain } = createChainCheck(ANNA);
  stored.forEach(add);
  const [first] = chain.differences;
  return first ? `${first.kind} at entry ${first.revision}\n` : 'OK\n';
};

const LENGTH = 6;
const good = goodLedger(LENGTH);
const at = fc.nat({ max: LENGTH - 1 });
const set = fc.constantFrom<Partial<Entry>>(
  { partner_id: BERT },
  { reveal_id: id(99) },
  { reveal_id: id(0) },
  { tracker_id: id(7) },
  { key_id: null },
  { key_id: 'user_é', user_id: null },
  { user_id: 'key_a' },
  { completed_at: '2026-01-01T00:00:00.001Z' },
  { units: 0 },
  { units: 1 },
  { units: 2 as unknown as 1 },
  { position: '1' },
  { position: '99999999999999999999' },
  { position: '-1' },
  { previous: '1'.repeat(64) },
  { digest: '1'.repeat(64) },
);
/** Manipulations of a ledger; `mended`: the entry's own digest is recomputed. */
const tampering = fc.record({
  what: fc.constantFrom('set', 'set', 'set', 'set', 'remove', 'close up', 'double', 'swap'),
  at,
  set,
  mended: fc.boolean(),
});

type Tampering = typeof tampering extends fc.Arbitrary<infer T> ? T : never;

const tampered = (how: Tampering): Numbered[] => {
  const entry = good[how.at];
  if (!entry) throw new Error('one of the entries');
  const renumbered = (entries: readonly Numbered[]) => entries.map((each, number) => ({ ...each, number }));
  switch (how.what) {
    case 'remove':
      return good.toSpliced(how.at, 1);
    case 'close up':
      return renumbered(good.toSpliced(how.at, 1));
    case 'double':
      return renumbered(good.toSpliced(how.at, 0, entry));
    case 'swap':
      return renumbered([entry, ...good.toSpliced(how.at, 1)]);
    default: {
      const changed = { ...entry, ...how.set };
      const digest = how.mended ? digestOf(changed.number, changed) : changed.digest;
      return good.with(how.at, { ...changed, digest });
    }
  }
};

describe('the independent verifier', () => {
  it('agrees with the audit on a correct ledger', async () => {
    expect(audited(good)).toBe('OK\n');
    expect(await verify(ANNA, good)).toEqual({ code: 0, stdout: '2026-01 1\n2026-02 1\n2026-03 1\nOK\n' });
  });

  it('reports the same first difference as the audit in a manipulated ledger', async () => {
    await fc.assert(
      fc.asyncProperty(tampering, async (how) => {
        const entries = tampered(how);
        const { code, stdout } = await verify(ANNA, entries);
        expect(stdout.split('\n').at(-2)).toBe(audited(entries).trimEnd());
        expect(code).toBe(stdout.endsWith('OK\n') ? 0 : 1);
      }),
      { numRuns: 25 },
    );
  });
});
