import { expect, it } from 'vitest';
import { readDatabaseUrl } from '../../platform/config/database-url.ts';

it.each([
  ['postgres://me:p%40ss@db.example:6432/doorplate', 'postgres://me:p%40ss@db.example:6432/doorplate'],
  ['postgresql://doorplate@/doorplate?host=/run/pg', 'postgresql://doorplate@%2Frun%2Fpg/doorplate'],
  ['postgresql:///doorplate?host=/run/pg&port=5433', 'postgresql://%2Frun%2Fpg:5433/doorplate'],
  ['postgresql://me@:5433/doorplate?host=/run/pg', 'postgresql://me@%2Frun%2Fpg:5433/doorplate'],
  ['postgres://h:1/doorplate?user=me&password=a/b', 'postgres://me:a%2Fb@h:1/doorplate'],
  ['postgres://me@[::1]:5433/doorplate', 'postgres://me@%3A%3A1:5433/doorplate'],
  ['postgres://h/doorplate?sslmode=verify-full', 'postgres://h/doorplate?sslmode=verify-full'],
  ['postgres:///doorplate', 'postgres://localhost/doorplate'],
  ['postgres://me:p@ss@h/doorplate', 'postgres://me:p%40ss@h/doorplate'],
  ['postgres://h/doorplate?user=me@corp&password=a@b', 'postgres://me%40corp:a%40b@h/doorplate'],
])('reads %s as %s', (text, url) => {
  expect(readDatabaseUrl(text)).toEqual({ url, variables: [] });
});

it('names the variables that complete the URL, and takes none for what the URL says', () => {
  const env = { PGPASSWORD: 'secret', PGSSLMODE: 'require', PGPORT: '5433', PGHOST: 'other', PGDATABASE: '' };
  expect(readDatabaseUrl('postgresql://me@h:1/doorplate', env)).toEqual({
    url: 'postgresql://me:secret@h:1/doorplate?sslmode=verify-full',
    variables: ['PGPASSWORD', 'PGSSLMODE'],
  });
  expect(readDatabaseUrl('postgresql://me:own@/doorplate?sslmode=disable', env)?.variables).toEqual([
    'PGHOST',
    'PGPORT',
  ]);
});

it.each([
  'postgres://me:one@two/three@h:1/doorplate',
  'postgres://me:one@two#three@h:1/doorplate',
  'postgres://me:one@two?three@h:1/doorplate',
  'postgres://me:one@two?user=three@h:1/doorplate',
  'postgres://me:1/two@three@h:1/doorplate',
  'postgres://me:1?two@h:1/doorplate',
])('takes %s for no URL, because it is not clear where its password ends', (text) => {
  expect(readDatabaseUrl(text)).toBeNull();
});

it.each(['', 'mysql://h/d', 'h/d', 'postgres://h/d?port=x'])('takes %j for no URL of PostgreSQL', (text) => {
  expect(readDatabaseUrl(text)).toBeNull();
});
