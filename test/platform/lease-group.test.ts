import pino from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { LeaseGroup, type RunGroup } from '../../platform/leases/leases.ts';

afterEach(() => vi.useRealTimers());

const startGroup = (run: RunGroup) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const lines: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) });
  const group = new LeaseGroup({ name: 'billing', run, processId: 'one', log, onEnd: () => undefined });
  group.start('1');
  return { group, lines };
};

it('is reported every 30 s while its run does not end', async () => {
  const hanging = Promise.withResolvers<void>();
  const { group, lines } = startGroup(() => hanging.promise);
  group.end();
  group.end();
  await vi.advanceTimersByTimeAsync(60_000);
  const line = '{"level":50,"group":"billing","msg":"group does not end; restart the process"}\n';
  expect(lines).toEqual([line, line]);

  hanging.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lines).toHaveLength(2);
});

it('is not reported when its run ends', async () => {
  const { group, lines } = startGroup(
    (_lease, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  );
  group.end();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lines).toEqual([]);
});
