import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../domain/kernel/time.ts';
import { BEGUN, EXPIRED, type Expiry, openExpiry } from '../support/expiring.ts';
import { dyingStore, Killed } from '../support/other-stores.ts';

let expiry: Expiry;
beforeAll(async () => {
  expiry = await openExpiry();
});
afterAll(() => expiry.stack.close());

describe('a sweep', () => {
  it.each(['before', 'after'] as const)(
    'that is killed %s any of its calls is completed by the next one',
    async (when) => {
      const { stack, at, visit, session, sweepSessions, stored, rows } = expiry;
      /** Whether it reached its call `n`. */
      const killedAt = async (n: number): Promise<boolean> => {
        const dying = dyingStore(stack.store, n, when);
        const error = await sweepSessions({ store: dying.store }).then(
          () => null,
          (reason: unknown) => reason,
        );
        expect(error instanceof Killed).toBe(dying.hasDied());
        return dying.hasDied();
      };
      for (let n = 0, died = true; died; n += 1) {
        at(BEGUN);
        const [alone, shared] = [await session(), await session()];
        at(BEGUN + MINUTE);
        await visit({ ...shared, ip: '9.9.9.9' });
        at(EXPIRED);
        died = await killedAt(n);
        await sweepSessions();
        expect([await stored(alone.stream), await stored(shared.stream)], `killed at ${n}`).toEqual([
          [],
          [1],
        ]);
        at(EXPIRED + MINUTE);
        died = (await killedAt(n)) || died;
        await sweepSessions();
        expect(await stored(shared.stream), `killed at ${n}`).toEqual([]);
        for (const [{ partner_id }, count] of [
          [alone, 1],
          [shared, 2],
        ] as const) {
          expect(await rows('session', partner_id)).toEqual([]);
          expect(await rows('expired_session', partner_id)).toHaveLength(count);
        }
        if (!died) expect(n).toBeGreaterThan(5);
      }
    },
  );

  it('passes over items that may not be deleted yet, also those of the same partner, and ends', async () => {
    const { stack, at, rows, reveal, options, sweepReveals, stored } = expiry;
    at(BEGUN);
    const { partner_id, stream } = await reveal();
    const other = await reveal();
    await expiry.caughtUp();
    await stack.pool.query(
      `insert into read.reveal (reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, last_revision, last_position)
       select gen_random_uuid(), $1, $1, $1, $2, $2, 0, 9e18 from generate_series(1, 1200)`,
      [partner_id, new Date(BEGUN)],
    );
    await expiry.readerAt(8n * 10n ** 18n);
    at(EXPIRED);
    let batches = 0;
    const query = (config: { name?: string }, ...values: unknown[]) => {
      if (config.name === 'due reveals') batches += 1;
      return stack.pool.query(config as never, ...(values as never[]));
    };
    const pool = Object.assign(Object.create(options.pool), { query });
    await sweepReveals({ pool });
    expect([...(await stored(stream)), ...(await stored(other.stream))]).toEqual([]);
    expect(await rows('reveal', partner_id)).toHaveLength(1_200);
    expect(batches).toBeLessThan(10);
  });
});
