import { EventEmitter } from 'node:events';
import { expect, it, vi } from 'vitest';
import { createShutdown } from '../../platform/telemetry/shutdown.ts';

function process_(limitMs = 10_000) {
  const signals = new EventEmitter();
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const log = { info: vi.fn(), error: vi.fn() };
  const shutdown = createShutdown({
    log,
    signals: signals as unknown as NodeJS.Process,
    exit: resolve,
    limitMs,
  });
  return { shutdown, signals, ended, log };
}

const never = () => new Promise<void>(() => {});

it.each(['SIGTERM', 'SIGINT'])(
  'ends the parts in reverse order on %s, and then the process with 0',
  async (signal) => {
    const { shutdown, signals, ended } = process_();
    const order: string[] = [];
    shutdown.register('database', () => void order.push('database'));
    shutdown.register('listener', async () => {
      await Promise.resolve();
      order.push('listener');
    });
    signals.emit(signal);
    expect(await ended).toBe(0);
    expect(order).toEqual(['listener', 'database']);
  },
);

it('ends the other parts when one fails, and the process with 1', async () => {
  const { shutdown, signals, ended, log } = process_();
  const database = vi.fn();
  shutdown.register('database', database);
  shutdown.register('listener', () => Promise.reject(new Error('broken')));
  signals.emit('SIGTERM');
  expect(await ended).toBe(1);
  expect(database).toHaveBeenCalledOnce();
  expect(log.error.mock.calls[0]?.[1]).toBe('"listener" did not end cleanly');
});

it('ends the other parts when one hangs, and the process with 1', async () => {
  const { shutdown, signals, ended, log } = process_();
  const database = vi.fn();
  shutdown.register('database', database);
  shutdown.register('listener', never, 20);
  signals.emit('SIGTERM');
  expect(await ended).toBe(1);
  expect(database).toHaveBeenCalledOnce();
  expect(log.error.mock.calls[0]?.[0]).toMatch(/^"listener" did not end within 0.02 s/);
});

it('aborts on a second signal and names the part that hangs', async () => {
  const { shutdown, signals, ended, log } = process_();
  shutdown.register('listener', never);
  signals.emit('SIGTERM');
  signals.emit('SIGINT');
  expect(await ended).toBe(1);
  expect(log.error.mock.calls).toEqual([
    ['SIGINT during the shutdown: ending at once, with "listener" not ended'],
  ]);
});

it('ends what has started when the start fails, before it says why', async () => {
  const { shutdown } = process_();
  const order: string[] = [];
  shutdown.register('stores', () => void order.push('stores'));
  shutdown.register('leases', () => void order.push('leases'));
  await expect(shutdown.starting(Promise.reject(new Error('a wrong file')))).rejects.toThrow('a wrong file');
  expect(order).toEqual(['leases', 'stores']);
});
