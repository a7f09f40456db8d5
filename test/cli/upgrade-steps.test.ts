import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { statementsOf, stepOf } from '../../cli/operations/upgrade.ts';
import { migrationSql } from '../../platform/postgres/migrate.ts';

const names = readdirSync(new URL('../../migrations', import.meta.url)).flatMap((file) =>
  file.endsWith('.sql') ? [file.slice(0, -'.sql'.length)] : [],
);

it.each(names)('knows what each statement of %s does', (name) => {
  for (const statement of statementsOf(migrationSql(name))) stepOf(statement);
});

it.each([
  ['create index concurrently i on read.session (x)', 'read.session', 'none', true],
  ['create unique index i on read.session (x)', 'read.session', 'writes', true],
  ['alter table read.session add column a int, add column b int', 'read.session', 'moment', false],
  ['alter table read.session add constraint c check (a > 0) not valid', 'read.session', 'moment', false],
  ['alter table read.session alter column a set not null', 'read.session', 'writes', true],
  ['alter table read.session alter column a type text', 'read.session', 'writes', true],
  ['update read.session set a = 1', 'read.session', 'moment', true],
  ['drop table read.old', 'read.old', 'moment', false],
] as const)('%s', (statement, table, lock, scans) => {
  expect(stepOf(statement)).toMatchObject({ table, lock, scans });
});

it('refuses to guess what an unknown statement does', () => {
  expect(() => stepOf('cluster read.session')).toThrow(/not known/);
});
