import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { MASTER_KEY } from '../../test/support/doorplate.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { type OrdinaryDay, openYears, type Years } from '../../test/support/years.ts';
import type { Line, Row } from '../support/bench.ts';
import { withRuntime } from '../support/product.ts';

const DAY_OF_PARTNER: OrdinaryDay = { lookups: 40, visits: 60, reveals: 30 };
const PARTS = 2;
const YEAR = 365 * DAY;
/** By then everything that is deleted after 400 days has been deleted once. */
const SETTLED_YEARS = 3;
const [FULL_YEARS, QUICK_YEARS] = [10, 4];

/** Bytes on disk, rewritten without gaps before. */
interface Sizes {
  readonly log: number;
  readonly names: number;
  readonly tables: number;
  readonly forEver: number;
}

/**
 * The log and the tables at the end of the last of ten simulated years, against the end of the third. In each half of
 * a year the partner has one ordinary day, and workers do their upkeep until the next. The ledger, the rows of
 * `reveal_unit` and the names of reveals' streams are kept for ever, and are listed apart.
 */
export const yearsRow: Row = {
  name: 'years',
  run: async ({ effort, say }) => {
    const folder = makeTestFolder();
    try {
      return await withRuntime({ DATA_DIR: folder, MASTER_KEY }, 'own', async ({ databaseUrl: url }) => {
        const years = await openYears({ database: { url, drop: async () => undefined } });
        try {
          return [await measure(years, effort.rounds > 2 ? FULL_YEARS : QUICK_YEARS, say)];
        } finally {
          await years.api.close();
        }
      });
    } finally {
      await removeDataFolder(folder);
    }
  },
};

const measure = async (years: Years, last: number, say: (text: string) => void): Promise<Line> => {
  const notes: string[] = [];
  const totals = new Map<number, Sizes>();
  for (let year = 1; year <= last; year += 1) {
    for (let part = 0; part < PARTS; part += 1) {
      await years.work(DAY_OF_PARTNER);
      years.clock.advance(YEAR / PARTS);
      await years.upkeep();
    }
    const sizes = await sizesOf(years);
    totals.set(year, sizes);
    const text = `year ${year}: log ${kb(sizes.log)}, names of streams ${kb(sizes.names)}, tables ${kb(sizes.tables)}, for ever ${kb(sizes.forEver)}`;
    notes.push(text);
    say(text);
  }
  const [a, b] = [sum(totals.get(last)), sum(totals.get(SETTLED_YEARS))];
  const { lookups, visits, reveals } = DAY_OF_PARTNER;
  const grown = (totals.get(last)?.forEver ?? 0) - (totals.get(SETTLED_YEARS)?.forEver ?? 0);
  const perReveal = grown / (reveals * PARTS * (last - SETTLED_YEARS));
  return {
    row: 'ten years of ordinary days',
    ratio: a / b,
    target: { atMost: 1.1 },
    a: { of: `log and tables after year ${last}`, value: a / 1_024, unit: ' KiB' },
    b: { of: `after year ${SETTLED_YEARS}`, value: b / 1_024, unit: ' KiB' },
    notes: [
      `a day of ${lookups} new lookups, ${visits} visits and ${reveals} reveals in each half of a year`,
      ...notes,
      `what lives for ever (ledger, reveal_unit, names of reveals) takes ${Math.round(perReveal)} bytes a reveal`,
    ],
  };
};

const kb = (bytes: number): string => `${Math.round(bytes / 1_024)} KiB`;
const sum = (sizes: Sizes | undefined): number =>
  sizes === undefined ? 0 : sizes.log + sizes.names + sizes.tables;

const LEDGER = `stream ^@ 'billing-'`;
const REVEAL_NAME = `name ^@ 'reveal-'`;

const sizesOf = async ({ api: { sql } }: Years): Promise<Sizes> => {
  const { rows: tables } = await sql.query<{ name: string }>(
    `select format('%I.%I', schemaname, relname) as name from pg_stat_user_tables
     where schemaname in ('eventlog', 'read', 'work')`,
  );
  await sql.query(`vacuum full ${tables.map(({ name }) => name).join(', ')}`);
  const bytes = async (what: string): Promise<number> =>
    Number((await sql.query<{ bytes: string | null }>(`select ${what} as bytes`)).rows[0]?.bytes ?? 0);
  const size = (table: string): Promise<number> => bytes(`pg_total_relation_size('${table}')`);
  /** The share of a table that its rows with a condition take, indexes in proportion. */
  const part = async (table: string, condition: string): Promise<number> =>
    (await size(table)) *
    (await bytes(
      `(select sum(pg_column_size(t.*)) filter (where ${condition})::numeric / nullif(sum(pg_column_size(t.*)), 0) from ${table} t)`,
    ));
  const ledger = await part('eventlog.event', LEDGER);
  const names = await part('eventlog.stream', REVEAL_NAME);
  const units = await size('read.reveal_unit');
  let others = 0;
  for (const { name } of tables) {
    if (!name.startsWith('eventlog.') && name !== 'read.reveal_unit') others += await size(name);
  }
  return {
    log: (await size('eventlog.event')) - ledger,
    names: (await size('eventlog.stream')) - names,
    tables: others,
    forEver: ledger + names + units,
  };
};
