import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { Listener } from '../../platform/postgres/notifications.ts';
import { testDatabase } from '../support/database.ts';
import { freezeSessions } from '../support/frozen-sessions.ts';
import { until } from '../support/until.ts';

it('an unknown notification ends neither the process nor the listener', async () => {
  const { url, drop } = await testDatabase();
  const notifications: unknown[] = [];
  const listener = new Listener({
    url,
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

it('listeners of a database share a session, and one that joins or leaves disturbs no other', async () => {
  const { url, drop } = await testDatabase();
  const heard: string[] = [];
  const listenTo = (channel: string) => {
    const listener = new Listener({
      url,
      channels: [channel],
      onNotification: (_channel, payload) => heard.push(`${channel} ${payload}`),
    });
    listener.ensure();
    return until(`it listens to ${channel}`, () => listener.isListening()).then(() => listener);
  };
  const first = await listenTo('first');
  const second = await listenTo('second');
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  const sessions = `select count(*)::int as count from pg_stat_activity
    where application_name = 'doorplate listen' and datname = current_database()`;
  expect((await db.query(sessions)).rows).toEqual([{ count: 1 }]);
  await first.close();
  await db.query(`notify first, 'unheard'; notify second, 'heard'`);
  await until('the notification arrives', () => heard.length > 0);
  expect(heard).toEqual(['second heard']);
  await second.close();
  await until('the session ends', async () => (await db.query(sessions)).rows[0].count === 0);
  await db.end();
  await drop();
});

it('the listener reconnects when its quiet connection no longer answers', async () => {
  const { url, drop } = await testDatabase();
  const notifications: string[] = [];
  const listener = new Listener({
    url,
    channels: ['talk'],
    onNotification: (_channel, payload) => notifications.push(payload),
  });
  listener.ensure();
  await until('it listens', () => listener.isListening());
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  const { rows } =
    await db.query(`select pid from pg_stat_activity where application_name = 'doorplate listen'
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

it('tells that the connection is lost where it could not be made', async () => {
  const lost = vi.fn();
  const listener = new Listener({
    url: 'postgres://nobody@127.0.0.1:1/none',
    channels: ['talk'],
    onNotification: () => undefined,
    lost,
  });
  listener.ensure();
  await until('it is told', () => lost.mock.calls.length > 0);
  await listener.close();
});

it('listeners that join at once send one statement after the other, as pg asks', async () => {
  const { url, drop } = await testDatabase();
  const query = pg.Client.prototype.query as (this: pg.Client, text: string) => Promise<unknown>;
  let running = 0;
  let most = 0;
  async function counted(this: pg.Client, text: string): Promise<unknown> {
    running += 1;
    most = Math.max(most, running);
    return query.call(this, text).finally(() => {
      running -= 1;
    });
  }
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(counted as never);
  const listenTo = (channel: string) =>
    new Listener({ url, channels: [channel], onNotification: () => undefined });
  const first = listenTo('first');
  first.ensure();
  await until('it listens', () => first.isListening());
  const others = ['second', 'third', 'fourth'].map(listenTo);
  for (const other of others) other.ensure();
  await until('they listen', () => others.every((other) => other.isListening()));
  expect(most).toBe(1);
  spy.mockRestore();
  for (const listener of [first, ...others]) await listener.close();
  await drop();
});
