import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { CONDITIONS, conditionsOf } from '../../operations/conditions.ts';
import { recordConditions } from '../../processors/operations/operator-alerts.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse } from '../support/dashboard.ts';
import { answersOf, type Surroundings, startSurroundings, useEverything } from '../support/everything.ts';
import { copyForHeavyPartner } from '../support/filled-tables.ts';
import { type Plan, planOf, rowsRead, tablesOf } from '../support/rows-read.ts';
import { upkeepOf } from '../support/years.ts';

interface Statement {
  readonly name: string | undefined;
  readonly text: string;
  readonly values: unknown[];
}

const COPIES = 20_000;
/** More than the pages in which jobs read a table. */
const MOST_ROWS = 6_000;
/** The last executions of a statement, each with its own values. */
const EXECUTIONS = 2;
const MOST_PAGES = 60;
const LIMIT_MS = 120_000;
const NOT_PLANNED = /lock_writer|pg_notify/;
/** Statements that read a table whole, by a part of their text, and why they may. */
const WHOLE_TABLES: Readonly<Record<string, string>> = {
  'with period as': 'live endpoints, five of a partner, at a start',
  'select h.webhook_id, h.partner_id, h.state': 'live endpoints, five of a partner',
  'count(*) as due, min(d.next_attempt_at)': 'of all partners: live endpoints, five of each',
  "select 'webhook_deliveries' as queue": 'of all partners: live endpoints, and 31 days of each',
  'select h.webhook_id, h.partner_id, e.name': 'of all partners: live endpoints, five of each',
  'select t.tracker_id, t.partner_id, t.name, began.hour':
    'of all partners, every five minutes: TRACKERS_PER_PARTNER of each, a few rows of each tracker',
  'with usable as (':
    'of all partners, every five minutes: keys, and the reservations of a day of partners that have an allowance',
  'from (select from read.enrichment_work limit': 'ENRICHMENT_OUTSTANDING limits them',
  'select provider, ': 'one row a day of each provider',
  'with clue as materialized': 'MAX_CLUES of an address',
  'select w.ip as item, w.round as cycle':
    'due first, past what is claimed or held back; ENRICHMENT_OUTSTANDING limits it',
  'select count(*) from read.enrichment_work': 'ENRICHMENT_OUTSTANDING limits them',
  'work.login ': 'at a login: 20 of a user, whom an operator creates',
  'min(last_position) as first_position': 'MOST_OVERDUE',
  'min(enriched_at) as oldest': 'MOST_OVERDUE',
  'select day::text, ip from':
    'ENRICHMENT_OUTSTANDING limits the results with open work, which it passes over',
  'domain_look: with due': 'a hundred domains of a partner',
  'select distinct partner_id from read.webhook_endpoint': 'each night, what is forgotten then',
  'from read.saved_lookup where ip > $1': 'each hour, in pages of 5,000',
};

const clock = manualClock();
const statements = new Map<string, Statement[]>();
let around: Surroundings;
let api: TestApi;

const note = (query: unknown, second: unknown): void => {
  const given = typeof query === 'string' ? { text: query, values: second } : query;
  const { name, text, values } = given as Partial<Statement>;
  if (text === undefined || !/^\s*\(?\s*(select|with|insert|update|delete)\b/i.test(text)) return;
  const executions = [...(statements.get(text) ?? []), { name, text, values: values ?? [] }];
  statements.set(text, executions.slice(-EXECUTIONS));
};

const noteStatements = (): void => {
  const { query } = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    note(args[0], args[1]);
    return query.apply(this, args) as never;
  } as never);
};

/** Requests the pages of the dashboard that lead from one to the next. */
const visitPages = async (cookie: string): Promise<void> => {
  const paths = new Set(['/dashboard']);
  for (const path of paths) {
    const page = await browse(api, 'GET', path, { cookie });
    for (const [, next = ''] of page.body.matchAll(/href="(\/dashboard[^"#]*)"/g)) {
      if (paths.size < MOST_PAGES) paths.add(next.replaceAll('&amp;', '&'));
    }
  }
};

beforeAll(async () => {
  noteStatements();
  around = await startSurroundings();
  api = await startApi({ clock, providers: [around.provider], env: around.env });
  const used = await useEverything(api, around);
  await answersOf(api, used);
  await visitPages(used.cookie);
  await upkeepOf(api, clock);
  const { pool, config } = api.runtime;
  const now = clock.now();
  for (const { findInTables } of CONDITIONS) await findInTables({ pool, config, now, partnerId: null });
  await recordConditions(api.runtime, conditionsOf('webhook'));
  vi.restoreAllMocks();
});

afterAll(async () => {
  await api.close();
  await around.close();
});

/** Returns values as literals of SQL, as the driver sends them. */
const literals = async (db: pg.Client, values: readonly unknown[]): Promise<string[]> => {
  const columns = values.map((_, index) => `$${index + 1}::text as "${index}"`);
  const { rows } = await db.query(
    `select ${columns.join(', ')}`,
    values.map((value) => (Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value)),
  );
  return values.map((_, index) => {
    const text: string | null = rows[0][index];
    return text === null ? 'null' : pg.escapeLiteral(text);
  });
};

/** The plan of a named statement is cached, and made without values. */
const planned = async (db: pg.Client, { name, text, values }: Statement): Promise<Plan> => {
  if (name === undefined || values.length === 0) return planOf(db, text, values);
  const given = await literals(db, values);
  await db.query(`prepare noted as ${text}`);
  return planOf(db, `execute noted (${given.join(', ')})`, []);
};

/** Returns what a statement reads too much of, and undoes what it writes. */
const excessOf = async (db: pg.Client, statement: Statement): Promise<string[]> => {
  await db.query('savepoint before');
  try {
    const plan = await planned(db, statement);
    return tablesOf(plan)
      .map((table) => ({ table, read: rowsRead(plan, table) }))
      .filter(({ read }) => read > MOST_ROWS)
      .map(({ table }) => `${table}: ${statement.text.replace(/\s+/g, ' ').trim().slice(0, 200)}`);
  } catch (error) {
    // What was inserted then is there.
    if (error instanceof pg.DatabaseError && error.code === '23505') return [];
    throw new Error(`${error} in ${statement.text}`);
  } finally {
    await db.query('rollback to savepoint before; deallocate all');
  }
};

it(
  'reads few rows of a heavy partner in any statement of the product',
  async () => {
    const db = new pg.Client({ connectionString: api.runtime.databaseUrl });
    await db.connect();
    try {
      // As the connections of the service.
      await db.query(
        'begin; set local enable_seqscan = off; set local plan_cache_mode = force_generic_plan; set local search_path = read, public',
      );
      const filled = await copyForHeavyPartner(db, COPIES);
      await db.query('analyze');
      const found = new Set<string>();
      for (const executions of statements.values()) {
        for (const one of executions) {
          if (NOT_PLANNED.test(one.text)) continue;
          for (const excess of await excessOf(db, one)) found.add(excess);
        }
      }
      const isKnown = (excess: string) => Object.keys(WHOLE_TABLES).some((part) => excess.includes(part));
      expect([...found].filter((excess) => !isKnown(excess))).toEqual([]);
      // The run must stay one of most of the product.
      expect(filled.length).toBeGreaterThan(30);
      expect(statements.size).toBeGreaterThan(150);
    } finally {
      await db.end();
    }
  },
  LIMIT_MS,
);
