import pg from 'pg';
import { expect, it } from 'vitest';
import { Listener } from '../../platform/postgres/notifications.ts';
import { testDatabase } from '../support/database.ts';
import { freezeSessions } from '../support/frozen-sessions.ts';
import { until } from '../support/until.ts';

it('an unknown notification ends neither the process nor the listener', async () => {
  const { url, drop } = await testDatabase();
  const notifications: unknown[] = [];
  const listener = new Listener({
    url,
    name: 'a test',
    channels: ['talk'],
    onNotification: (_channel, payload) => notifications.push(JSON.parse(payload)),
  });
  listener.ensure();
  await until('it listens', async () => listener.isListening());
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  await db.query(`notify talk, 'no JSON'; notify talk, '1'`);
  await until('the later notification arrives', async () => notifications.length > 0);
  expect(notifications).toEqual([1]);
  await db.end();
  await listener.close();
  await drop();
});

it('the listener reconnects when its quiet connection no longer answers', async () => {
  const { url, drop } = await testDatabase();
  const notifications: string[] = [];
  const listener = new Listener({
    url,
    name: 'a frozen session',
    channels: ['talk'],
    onNotification: (_channel, payload) => notifications.push(payload),
  });
  listener.ensure();
  await until('it listens', () => listener.isListening());
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  const { rows } =
    await db.query(`select pid from pg_stat_activity where application_name = 'a frozen session'
    and datname = current_database()`);
  const thaw = freezeSessions([rows[0].pid]);
  await until('the session is given up', () => !listener.isListening());
  await until('it listens again', () => listener.isListening());
  await db.query(`notify talk, 'later'`);
  await until('a notification arrives', () => notifications.length > 0);
  await db.end();
  await listener.close();
  thaw();
  await drop();
});
