import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createNotifier } from '../../platform/notifier.ts';
import { eventually } from '../support/eventually.ts';
import { freezeSessions } from '../support/frozen-sessions.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const started = async () => {
  const received: string[] = [];
  const listening = await stack.session('listen one; listen other');
  listening.on('notification', ({ channel, payload = '' }) => received.push(`${channel} ${payload}`));
  const notifier = createNotifier(stack.url);
  onTestFinished(() => notifier.close());
  return { notifier, received };
};

it('sends equal notices once that wait while it sends others', async () => {
  const { notifier, received } = await started();
  for (let n = 0; n < 600; n += 1) notifier.notify([{ channel: 'one', payload: '' }]);
  notifier.notify([{ channel: 'other', payload: 'last' }]);
  await eventually('all are received', () => received.includes('other last'));
  expect(received).toEqual(['one ', 'one ', 'other last']);
});

it('keeps a limited number of notices that wait, the newest', async () => {
  const { notifier, received } = await started();
  for (let n = 0; n < 5_000; n += 1) notifier.notify([{ channel: 'one', payload: String(n) }]);
  await eventually('the newest is received', () => received.includes('one 4999'));
  expect(received).toHaveLength(1_001);
});

it('sends later notices when PostgreSQL has refused one', async () => {
  const { notifier, received } = await started();
  notifier.notify([{ channel: 'one', payload: 'x'.repeat(9_000) }]);
  await eventually('a later one is received', () => {
    notifier.notify([{ channel: 'other', payload: 'later' }]);
    return received.includes('other later');
  });
  expect(received.every((text) => text === 'other later')).toBe(true);
});

it('sends later notices when its connection no longer answers', async () => {
  const { notifier, received } = await started();
  notifier.notify([{ channel: 'one', payload: 'first' }]);
  await eventually('the first is received', () => received.includes('one first'));
  const [session] = await stack.rows(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'doorplate notify'`,
  );
  freezeSessions([Number(session?.pid)]);
  await eventually('a later one is received', () => {
    notifier.notify([{ channel: 'other', payload: 'later' }]);
    return received.includes('other later');
  });
});
