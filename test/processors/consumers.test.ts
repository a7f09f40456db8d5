import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { CHECKPOINTS_CHANNEL, Listener } from '../../platform/postgres/notifications.ts';
import { createConsumerProgress } from '../../processors/consumers.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  await stack.rows(`insert into read.projection (name, position) values ('a', 7)`);
  await stack.rows(`insert into work.processor (name, position) values ('b', 3)`);
});
afterAll(() => stack.close());

const progress = () => createConsumerProgress(stack.pool, { projections: ['a'], processors: ['b'] });

it('waits for consumers by asking their processes to save their checkpoints', async () => {
  const notified = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<void>();
  const listener = new Listener({
    url: stack.url,
    name: 'test checkpoints',
    channels: [CHECKPOINTS_CHANNEL],
    onNotification: () => notified.resolve(),
    ready: () => listening.resolve(),
  });
  listener.ensure();
  await listening.promise;
  const waiting = progress().waitFor(7n as Position, new AbortController().signal);
  await notified.promise;
  await stack.rows(`update work.processor set position = 7 where name = 'b'`);
  expect(await waiting).toBe(true);
  await listener.close();
});

it('gives up the wait for consumers when its signal aborts, and names those that are behind', async () => {
  expect(await progress().waitFor(8n as Position, AbortSignal.abort())).toBe(false);
  expect(await progress().before(8n)).toEqual(['projection a', 'processor b']);
});
