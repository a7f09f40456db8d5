import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { billingStream } from '../../domain/billing/events.ts';
import { ledgerDecider } from '../../domain/billing/ledger.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';
import { createSlonik } from '../../platform/postgres/slonik.ts';
import { revealUnits } from '../../projections/billing/reveal-units.ts';
import { countUnits, listMonths, readRevealHours, readUnitRows } from '../../queries/billing/reveal-units.ts';
import { ANNA, BERT } from '../lookup/lookup-events.ts';
import { completedReveal, revealAppend, revealStream } from '../support/reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let client: pg.Client;
let db: DatabasePool;
beforeAll(async () => {
  stack = await startTestStack();
  client = await stack.session('set search_path to read');
  db = await createSlonik(stack.url);
});
beforeEach(() => client.query('truncate reveal_unit'));
afterAll(async () => {
  await db.end();
  await stack.close();
});

type Completed = ReturnType<typeof completedReveal>;

const completions = (reveals: readonly Completed[]): RecordedEvent[] =>
  reveals.flatMap((reveal, nth) =>
    revealAppend(reveal).map((event, revision) => ({
      ...event,
      stream: revealStream(reveal.reveal_id),
      revision,
      position: BigInt(nth * 10 + revision) as Position,
    })),
  );

/** The ledger's entries for them, later in the log. */
const billed = (reveals: readonly Completed[]): RecordedEvent[] => {
  let state = ledgerDecider.initial;
  return reveals.map((reveal, nth) => {
    const position = BigInt(nth * 10 + 1);
    const { partner_id, reveal_id, tracker_id, key_id, user_id, completed_at, billable } = reveal;
    const billable_ = {
      partner_id,
      reveal_id,
      tracker_id,
      key_id,
      user_id,
      completed_at,
      billable,
      position,
    };
    const decision = ledgerDecider.decide({ type: 'Bill', reveal: billable_ }, state);
    const [entry] = decision.ok ? decision.value : [];
    if (!entry) throw new Error('each has its entry');
    state = ledgerDecider.evolve(state, entry);
    return {
      ...entry,
      id: randomUUID(),
      metadata: { $correlationId: 'c', $causationId: 'c', at: completed_at },
      stream: billingStream(partner_id),
      revision: nth,
      position: BigInt(1_000 + nth) as Position,
    };
  });
};

const rows = async () => (await client.query('select * from reveal_unit order by position')).rows;

const reveals = [
  completedReveal({ partner_id: ANNA, completed_at: '2026-02-28T23:59:59.999Z' }),
  completedReveal({ partner_id: ANNA }, false),
  completedReveal({ partner_id: ANNA, key_id: null, user_id: 'user_b' }),
];

describe('the read model of reveal units', () => {
  it('is the same from one batch, one by one, and from the ledger alone', async () => {
    const events = [...completions(reveals), ...billed(reveals)];
    await revealUnits.apply(events, client);
    const atOnce = await rows();
    expect(atOnce).toMatchObject([
      { units: 1, key_id: 'key_a', user_id: null, ledger_number: 0, position: '1' },
      { units: 0, key_id: 'key_a', user_id: null, ledger_number: 1, position: '11' },
      { units: 1, key_id: null, user_id: 'user_b', ledger_number: 2, position: '21' },
    ]);
    for (const others of [events.map((event) => [event]), [billed(reveals)], [[...events].reverse()]]) {
      await client.query('truncate reveal_unit');
      for (const batch of others) await revealUnits.apply(batch, client);
      expect(await rows()).toEqual(atOnce);
    }
  });

  it('has a reveal before its entry and keeps the first of two entries', async () => {
    await revealUnits.apply(completions(reveals), client);
    expect(await rows()).toMatchObject([
      { ledger_number: null },
      { ledger_number: null },
      { ledger_number: null },
    ]);
    const [first] = billed(reveals);
    if (!first) throw new Error('an entry');
    await revealUnits.apply([first, { ...first, revision: 7 }], client);
    await revealUnits.apply([{ ...first, revision: 8 }], client);
    expect((await rows())[0]).toMatchObject({ ledger_number: 0 });
  });
});

describe('the usage queries on reveal units', () => {
  const hour = (reveal: Partial<Completed>, hasData = true) =>
    completedReveal({ partner_id: ANNA, ...reveal }, hasData);

  it('add up by hour, for a key or a tracker, from inclusive to exclusive', async () => {
    const tracker_id = randomUUID();
    const all = [
      hour({ completed_at: '2026-03-01T09:59:59.999Z' }),
      hour({ completed_at: '2026-03-01T10:00:00.000Z', tracker_id }),
      hour({ completed_at: '2026-03-01T10:59:59.999Z' }, false),
      hour({ completed_at: '2026-03-01T12:00:00.000Z', key_id: null, user_id: 'user_b', tracker_id }),
      hour({ completed_at: '2026-03-01T13:00:00.000Z' }),
    ];
    await revealUnits.apply(completions(all), client);
    const range = ['2026-03-01T10:00:00.000Z', '2026-03-01T13:00:00.000Z'] as const;
    const ten = { hour: '2026-03-01T10:00:00.000Z', billable_reveals: 1 };
    const noon = { hour: '2026-03-01T12:00:00.000Z', billable_reveals: 1, completed_reveals: 1 };
    expect(await readRevealHours(db, { key_id: 'key_a' }, ...range)).toEqual([
      { ...ten, completed_reveals: 2 },
    ]);
    expect(await readRevealHours(db, { tracker_id }, ...range)).toEqual([
      { ...ten, completed_reveals: 1 },
      noon,
    ]);
    expect(await readRevealHours(db, { key_id: 'key_of_nobody' }, ...range)).toEqual([]);
  });

  it("count a partner's units in a month or in total", async () => {
    const others = hour({ partner_id: BERT });
    const next = hour({ completed_at: '2026-03-31T23:59:59.999Z' });
    await revealUnits.apply(completions([...reveals, others, next]), client);
    expect(await countUnits(db, ANNA)).toEqual({ units: 3, completed: 4 });
    expect(await countUnits(db, ANNA, '2026-02')).toEqual({ units: 1, completed: 1 });
    expect(await countUnits(db, ANNA, '2026-03')).toEqual({ units: 2, completed: 3 });
    expect(await countUnits(db, ANNA, '2025-12')).toEqual({ units: 0, completed: 0 });
    expect(await countUnits(db, ANNA, undefined, 11n)).toEqual({ units: 1, completed: 2 });
  });

  it('list the months of a partner, the newest first, and read one month at a time', async () => {
    const days = ['2025-11-30T23:59:59.999Z', '2026-01-01T00:00:00.000Z', '2026-01-31T23:59:59.999Z'];
    const others = days.map((completed_at) => hour({ completed_at, partner_id: BERT }));
    await revealUnits.apply(completions(others), client);
    const asked: string[] = [];
    const watched = {
      one: async (query: { sql: string; values: unknown[] }) => {
        asked.push(...query.values.filter((value) => String(value).endsWith('T00:00:00.000Z')).map(String));
        return db.one(query as never);
      },
    } as unknown as typeof db;
    expect(await listMonths(watched, BERT)).toEqual([
      { month: '2026-01', completed: 2, units: 2 },
      { month: '2025-11', completed: 1, units: 1 },
    ]);
    expect([...new Set(asked.map((day) => day.slice(0, 7)))]).toEqual(['2026-01', '2025-12', '2025-11']);
    expect(await listMonths(db, randomUUID())).toEqual([]);
  });

  it('return the rows of a partner in log order', async () => {
    await revealUnits.apply(completions([...reveals, hour({ partner_id: BERT })]), client);
    expect((await readUnitRows(db, ANNA, 11n)).map(({ position }) => position)).toEqual([1n, 11n]);
    expect((await readUnitRows(db, ANNA, 99n)).map(({ reveal_id }) => reveal_id)).toEqual(
      reveals.map(({ reveal_id }) => reveal_id),
    );
  });
});
