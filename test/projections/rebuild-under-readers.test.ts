import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pause } from '../../platform/clock/waiting.ts';
import { allProjections } from '../../projections/all.ts';
import { partners } from '../../projections/partners/keys.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Analyst, analystOf } from '../support/analysts.ts';
import { makeExamples } from '../support/examples.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let analyst: Analyst;
beforeAll(async () => {
  stack = await startTestStack();
  await makeExamples(stack.store);
  stack.project(allProjections);
  await stack.caughtUp(allProjections);
  analyst = await analystOf(stack.url);
});
afterAll(async () => {
  await analyst.leave();
  await stack.close();
});

const options = (onWaiting: () => void = () => undefined) => ({
  store: stack.store,
  url: stack.url,
  onWaiting,
});
const names = async () =>
  (await analyst.rows('select name from partners order by 1')).map(({ name }) => name);
const spoil = () => stack.pool.query(`update read.partner set name = name || ' spoiled'`);
const COMMENTS = `
  select c.relname, a.attname, col_description(c.oid, a.attnum) as text, obj_description(c.oid) as about
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
  where c.relnamespace = 'analytics'::regnamespace order by 1, a.attnum`;

describe('a view over a rebuilt read model', () => {
  it('shows the new table to the same readers with its comments', async () => {
    const comments = await stack.rows(COMMENTS);
    await spoil();
    expect(await names()).toEqual(['Anna spoiled', 'Bert spoiled']);
    await rebuild({ ...options(), projections: [partners] });
    expect(await names()).toEqual(['Anna', 'Bert']);
    expect(await stack.rows(COMMENTS)).toEqual(comments);
  });

  it('shows the new table when all are rebuilt, twice', async () => {
    const views = await stack.rows(
      `select viewname as name from pg_views where schemaname = 'analytics' order by 1`,
    );
    const everything = async () => {
      const all = [];
      for (const { name } of views) all.push(await analyst.rows(`select * from ${name} t order by t::text`));
      return all;
    };
    const before = await everything();
    for (const _ of [1, 2]) {
      await spoil();
      await rebuild({ ...options(), projections: allProjections });
      expect(await everything()).toEqual(before);
    }
    expect(await stack.rows(`select from pg_namespace where nspname in ('read_next', 'read_old')`)).toEqual(
      [],
    );
  });

  it('stays readable during the rebuild: no read fails, and the switch yields instead of blocking others', async () => {
    let reading = true;
    const readAll = async (query: string) => {
      const reader = await analyst.connect();
      while (reading) await reader.query(query);
    };
    const readers = [
      readAll('select count(*) from webhooks join deliveries using (webhook_id)'),
      readAll('select count(*) from deliveries join webhooks using (webhook_id) cross join partners'),
    ];
    for (const _ of [1, 2, 3]) await rebuild({ ...options(), projections: allProjections });
    reading = false;
    await Promise.all(readers);
  });

  it('waits for a reader in a long transaction, while others are served, and switches when it ends', async () => {
    const reader = await analyst.connect();
    await reader.query('begin');
    await reader.query('select * from partners');
    await spoil();
    let markWaiting = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (markWaiting = resolve));
    const rebuilding = rebuild({ ...options(markWaiting), projections: [partners] });
    await waiting;
    expect(await names()).toEqual(['Anna spoiled', 'Bert spoiled']);
    // For longer than the time between two looks, no other session waits.
    for (let n = 0; n < 100; n += 1) {
      await stack.pool.query(`begin; lock table read.partner in access share mode nowait;
        select from read.projection where name = '${partners.name}' for update nowait; commit`);
      await pause(20);
    }
    await reader.query('commit');
    await rebuilding;
    expect(await names()).toEqual(['Anna', 'Bert']);
  });
});
