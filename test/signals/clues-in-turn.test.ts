import type pg from 'pg';
import { expect, it } from 'vitest';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import { createSemaphore } from '../../platform/limits/semaphore.ts';
import { createClues } from '../../read-api/signals/clues.ts';
import { manualClock } from '../support/manual-clock.ts';

it('lookups of one partner leave a connection for the clues of others', async () => {
  const connections = createSemaphore({ limit: 3 });
  /** As for an address with very many clues. */
  let areLong = true;
  const ended = Promise.withResolvers<void>();
  const query = () =>
    connections.enter(async () => {
      if (areLong) await ended.promise;
      return { rows: [] };
    });
  const cluesOf = createClues({
    pool: { query } as unknown as pg.Pool,
    dayKeys: {} as DayKeys,
    clock: manualClock(),
    limitMs: 200,
    onUnavailable: () => undefined,
  });
  const busy = Array.from({ length: 20 }, () => cluesOf('anna', '8.8.8.8', null));
  areLong = false;
  expect(await cluesOf('ben', '8.8.4.4', null)).toMatchObject({ status: 'available' });
  ended.resolve();
  await Promise.all(busy);
});
