/** Years of a partner: stored data has the size of the last months, not of the years. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { describeOnStores } from '../support/stores.ts';
import { openYears, type Years } from '../support/years.ts';

describeOnStores('years', (env) => {
  let years: Years;
  beforeAll(async () => {
    years = await openYears({ env });
  });
  afterAll(() => years.api.close());

  /** Rows by table; for the log and its stream names, by the kind of the stream. */
  const sizes = async (): Promise<Map<string, number>> => {
    const { sql } = years.api;
    const { rows: tables } = await sql.query<{ name: string }>(
      `select schemaname || '.' || relname as name from pg_stat_user_tables where schemaname in ('read', 'work') order by 1`,
    );
    const counted = new Map<string, number>();
    for (const { name } of tables) {
      const { rows } = await sql.query<{ n: number }>(`select count(*)::int as n from ${name}`);
      counted.set(name, rows[0]?.n ?? 0);
    }
    const { rows } = await sql.query<{ kind: string; n: number }>(
      `select 'events of ' || split_part(stream, '-', 1) as kind, count(*)::int as n from eventlog.event group by 1
       union all
       select 'names of ' || split_part(name, '-', 1) as kind, count(*)::int as n from eventlog.stream group by 1`,
    );
    for (const { kind, n } of rows) counted.set(kind, n);
    return counted;
  };

  /** Data that is kept for ever: the ledger, and a unit and a name for each reveal. */
  const FOR_EVER = ['events of billing', 'read.reveal_unit', 'names of reveal'];

  it('years of a partner leave as many rows as the last months, except for the ledger', async () => {
    const grown: string[] = [];
    let before = new Map<string, number>();
    for (let period = 0; period < 5; period += 1) {
      await years.work({ lookups: 2, visits: 1, reveals: 1 });
      years.clock.advance(304 * DAY + HOUR);
      await years.upkeep();
      if (period === 2) before = await sizes();
    }
    for (const [name, n] of await sizes()) {
      if (!FOR_EVER.includes(name) && n > (before.get(name) ?? 0) + 1)
        grown.push(`${name}: ${before.get(name)}, ${n}`);
    }
    expect(grown).toEqual([]);
  }, 240_000);
});
