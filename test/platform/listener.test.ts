import pg from 'pg';
import { expect, it } from 'vitest';
import { createListener } from '../../platform/listener.ts';
import { testDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

it('what somebody says that means nothing ends neither the process nor the listening', async () => {
  const { url, drop } = await testDatabase();
  const heard: unknown[] = [];
  const listener = createListener({
    url,
    name: 'a test',
    channels: ['talk'],
    heard: (_channel, payload) => heard.push(JSON.parse(payload)),
  });
  listener.ensure();
  await until('it listens', async () => listener.hears());
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  await db.query(`notify talk, 'no JSON'; notify talk, '1'`);
  await until('it hears what comes after', async () => heard.length > 0);
  expect(heard).toEqual([1]);
  await db.end();
  await listener.close();
  await drop();
});
