import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProjections } from '../../projections/all.ts';
import { type Analyst, analystOf } from '../support/analysts.ts';
import { ADDRESSES, CANARY, makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const REFUSED = '42501';
const READ_ONLY = '25006';

let stack: TestStack;
let analyst: Analyst;
beforeAll(async () => {
  stack = await startTestStack();
  await makeExamples(stack.store);
  const projecting = stack.project(allProjections);
  await stack.caughtUp(allProjections);
  await projecting.stop();
  analyst = await analystOf(stack.url);
});
afterAll(async () => {
  await analyst.leave();
  await stack.close();
});

const codeOf = (query: string, db = analyst.db): Promise<string> =>
  db.query(query).then(
    () => 'done',
    (error: { code?: string }) => error.code ?? String(error),
  );

const OURS = `nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`;
const relations = async () =>
  (await stack.rows(
    `select nspname as schema, quote_ident(nspname) || '.' || quote_ident(relname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where relkind in ('r', 'v', 'm', 'S', 'p', 'f') and ${OURS} order by 2`,
  )) as { schema: string; name: string }[];

describe('an analyst', () => {
  it('reads every view, for all partners, and finds no address and no secret in any', async () => {
    const views = (await relations()).filter(({ schema }) => schema === 'analytics');
    expect(views.length).toBeGreaterThan(10);
    for (const { name } of views) {
      const rows = JSON.stringify(await analyst.rows(`select * from ${name}`));
      expect(rows, name).not.toContain(CANARY);
      for (const address of ADDRESSES) expect(rows, name).not.toContain(address);
    }
    expect(await analyst.rows('select name from partners order by 1')).toEqual([
      { name: 'Anna' },
      { name: 'Bert' },
    ]);
  });

  it('is tested with data that contain addresses and secrets', async () => {
    const tables = (await relations()).filter(({ schema }) => schema === 'read');
    const all = [];
    for (const { name } of tables) all.push(await stack.rows(`select * from ${name}`));
    for (const hidden of [CANARY, ...ADDRESSES]) expect(JSON.stringify(all)).toContain(hidden);
  });

  it('is refused every other table, whatever its schema', async () => {
    const others = (await relations()).filter(({ schema }) => schema !== 'analytics');
    expect(others.map(({ schema }) => schema)).toEqual(
      expect.arrayContaining(['read', 'work', 'eventlog', 'public']),
    );
    for (const { name } of others) expect(await codeOf(`select 1 from ${name}`), name).toBe(REFUSED);
  });

  it('is refused every function of ours except the one that its views use', async () => {
    const functions = await stack.rows(
      `select p.oid::regprocedure::text as name from pg_proc p join pg_namespace n on n.oid = pronamespace
       where ${OURS} and has_schema_privilege($1, n.oid, 'usage') and has_function_privilege($1, p.oid, 'execute')`,
      [analyst.granted.user],
    );
    expect(functions).toEqual([{ name: 'analytics.time_is_limited()' }]);
    expect(await codeOf(`select work.take_rate('x', 1, 1, 1, 1, 0, 0)`)).toBe(REFUSED);
  });

  it('writes nothing, not even after it turns off its read-only default', async () => {
    const writes = [
      `insert into partners (name) values ('x')`,
      'delete from sessions',
      'create table analytics.t (n int)',
      'create table public.t (n int)',
      'create temp table t (n int)',
      'create schema mine',
      `create role other`,
      `copy partners to program 'true'`,
      `copy partners to '/tmp/out'`,
      `select pg_read_file('postgresql.conf')`,
      `set session authorization doorplate`,
      'drop view analytics.partners',
      `create or replace view analytics.partners as select 1`,
    ];
    const db = await analyst.connect();
    for (const write of writes) expect([REFUSED, READ_ONLY], write).toContain(await codeOf(write, db));
    await db.query('set default_transaction_read_only to off');
    for (const write of writes) {
      expect([REFUSED, '55000', '22023'], write).toContain(await codeOf(write, db));
    }
  });

  it('cannot remove its limits of time, temporary files and connections', async () => {
    const db = await analyst.connect();
    const setting = async (name: string) => (await db.query(`show ${name}`)).rows[0]?.[name];
    expect(await setting('statement_timeout')).toBe('1min');
    expect(await setting('idle_in_transaction_session_timeout')).toBe('1min');
    expect(await setting('temp_file_limit')).toBe('2GB');
    for (const limit of ['0', '11min', '1d']) {
      await db.query(`set statement_timeout = '${limit}'`);
      for (const view of ['partners', 'usage_hours', 'webhooks']) {
        expect(await codeOf(`select count(*) from ${view}`, db), `${view} ${limit}`).toBe('55000');
      }
    }
    for (const limit of ['500ms', '90s', '10min']) {
      await db.query(`set statement_timeout = '${limit}'`);
      expect(await codeOf('select count(*) from partners', db), limit).toBe('done');
    }
    await db.query(`set statement_timeout = '50ms'`);
    expect(await codeOf('select count(*), pg_sleep(20) from partners', db)).toBe('57014');
    expect(await codeOf(`set temp_file_limit = -1`, db)).toBe(REFUSED);

    const sessions = Array.from({ length: 6 }, () => analyst.connect());
    const ended = await Promise.allSettled(sessions);
    expect(ended.some((each) => each.status === 'rejected' && each.reason.code === '53300')).toBe(true);
  });
});
