import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProjections } from '../../projections/all.ts';
import { type Analyst, analystOf } from '../support/analysts.ts';
import { makeExamples } from '../support/examples.ts';
import { copyForHeavyPartner } from '../support/filled-tables.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const FOLDER = new URL('../../deploy/analytics/questions/', import.meta.url);
const questions = readdirSync(FOLDER).map((name) => ({
  name,
  sql: readFileSync(new URL(name, FOLDER), 'utf8'),
}));

const COPIES = 5_000;
/** A twentieth of what an analyst's statement may take. */
const LIMIT_MS = 3_000;

/** The questions are about the last days, the examples about one in March 2026. */
const MOVED_TO_YESTERDAY = `
  do $$
  declare moved record;
  begin
    for moved in
      select c.relname, string_agg(format('%1$I = %1$I + (current_date - date ''2026-03-02'') * interval ''1 day''', a.attname), ', ') as sets
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relkind = 'r' and c.relnamespace = 'read'::regnamespace and a.atttypid = 'timestamptz'::regtype
      group by c.relname
    loop
      execute format('update read.%I set %s', moved.relname, moved.sets);
    end loop;
    update read.webhook_total set day = day + (current_date - date '2026-03-02');
  end $$`;

let stack: TestStack;
let analyst: Analyst;
beforeAll(async () => {
  stack = await startTestStack();
  await makeExamples(stack.store);
  const projecting = stack.project(allProjections);
  await stack.caughtUp(allProjections);
  await projecting.stop();
  const db = await stack.session('begin');
  await copyForHeavyPartner(db, COPIES);
  await db.query(
    `insert into read.partner (partner_id, name, created_at) values (md5('heavy')::uuid, 'Heavy', '2026-03-01')`,
  );
  await db.query(MOVED_TO_YESTERDAY);
  await db.query(
    `insert into work.provider_day (provider, day, company, taken, duration_ms) values ('directory', current_date, 9, 9, 9)`,
  );
  await db.query('commit');
  await db.query('analyze');
  analyst = await analystOf(stack.url);
});
afterAll(async () => {
  await analyst.leave();
  await stack.close();
});

describe('the saved questions of deploy/analytics', () => {
  it('are at least fifteen', () => expect(questions.length).toBeGreaterThanOrEqual(15));

  it.each(questions)('$name says what it answers, and answers it to an analyst in time', async ({ sql }) => {
    const [comment = ''] = /^(?:--.*\n)+/.exec(sql) ?? [];
    expect(comment).toMatch(/^-- Question: .+\n(?:-- .+\n)*-- Columns: .+\n(?:-- .+\n)*-- Reading: .+\n/);
    // A tool that pastes it must not need another schema or a second statement.
    expect(sql.slice(comment.length)).not.toMatch(/\b(read|work|eventlog|public)\.|;\s*\S/);

    const began = performance.now();
    const { fields, rows } = await analyst.db.query(sql);
    expect(performance.now() - began).toBeLessThan(LIMIT_MS);
    expect(rows.length).toBeGreaterThan(0);
    for (const { name } of fields) expect(comment).toMatch(new RegExp(`\\b${name}\\b`));
  });
});
