import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { createDayKeys } from '../../platform/crypto/keyring.ts';
import { deleteExpiredStreams } from '../../processors/sessions/expire-sessions.ts';
import { BEGUN, EXPIRED, type Expiry, openExpiry } from '../support/expiring.ts';

let expiry: Expiry;
beforeAll(async () => {
  expiry = await openExpiry();
});
afterAll(() => expiry.stack.close());
/** Expires and removes what earlier tests left. */
beforeEach(async () => {
  const { at, readerAt, sweepSessions, sweepReveals, warnings } = expiry;
  at(EXPIRED + 300 * DAY);
  await readerAt(2n ** 62n);
  await sweepSessions();
  await sweepReveals();
  warnings.length = 0;
  at(BEGUN);
});

describe('an expired session or reveal', () => {
  it('leaves store and read models at that instant, not before, and is announced once', async () => {
    const { at, session, reveal, sweepSessions, sweepReveals, stored, rows, expiredIds } = expiry;
    const one = await session();
    const other = await reveal();
    at(EXPIRED - 1);
    await sweepSessions();
    await sweepReveals();
    expect([await stored(one.stream), await stored(other.stream)]).toEqual([[0], [0, 1]]);
    at(EXPIRED);
    for (let runs = 0; runs < 2; runs += 1) {
      await sweepSessions();
      await sweepReveals();
      expect([await stored(one.stream), await stored(other.stream)]).toEqual([[], []]);
      expect([await rows('session', one.partner_id), await rows('reveal', other.partner_id)]).toEqual([
        [],
        [],
      ]);
      expect([...(await expiredIds(one.partner_id)), ...(await expiredIds(other.partner_id))]).toEqual([
        {
          type: 'sessions.SessionsExpired.v1',
          data: { partner_id: one.partner_id, sessions: [[one.session_id, isoTime(EXPIRED)]] },
        },
        {
          type: 'reveals.RevealsExpired.v1',
          data: { partner_id: other.partner_id, reveals: [[other.reveal_id, isoTime(EXPIRED)]] },
        },
      ]);
      expect([
        ...(await rows('expired_session', one.partner_id)),
        ...(await rows('expired_reveal', other.partner_id)),
      ]).toMatchObject([
        { session_id: one.session_id, expired_at: new Date(EXPIRED) },
        { reveal_id: other.reveal_id, expired_at: new Date(EXPIRED) },
      ]);
    }
  });

  it('cannot be decrypted from a copy after its day key is destroyed', async () => {
    const { stack, master, dayKeys, at, session } = expiry;
    const { session_id, stream } = await session({ custom: { plan: 'a secret' } });
    const [kept] = (await stack.rows('select data from eventlog.event where stream = $1', [stream])) as [
      { data: { sealed: string } },
    ];
    const sealed = Buffer.from(kept.data.sealed, 'base64');
    /** Decrypts with the whole database, the master key and a clock set back. */
    const open = async () => {
      const attacker = createDayKeys({ pool: stack.pool, master, clock: { now: () => BEGUN } });
      return (await attacker.of('2026-03-01'))?.open(sealed, session_id).toString('utf8');
    };
    // The day's last session expires at the end of March 31st.
    const over = Date.parse('2026-04-01');
    at(over - 1);
    await dayKeys.destroyExpired();
    expect(await open()).toContain('a secret');
    at(over);
    await dayKeys.destroyExpired();
    await expect(open).rejects.toThrow();
  });

  it('is listed as expired for 60 days and then forgotten', async () => {
    const { stack, at, options, session, reveal, sweepSessions, sweepReveals, stored, readerAt } = expiry;
    await stack.pool.query('delete from read.expired_session; delete from read.expired_reveal');
    const [one, other] = [await session(), await reveal()];
    at(EXPIRED);
    await sweepSessions();
    await sweepReveals();
    const streams = [one, other].map(({ partner_id }) => `expired-${partner_id}-2026-03-31`);
    const left = async () => (await Promise.all(streams.map(stored))).flat().length;
    const forgotten: string[] = [];
    const forget = () =>
      deleteExpiredStreams(options, async (before) => {
        forgotten.push(before);
      });
    at(Date.parse('2026-04-01') + 60 * DAY - 1);
    await forget();
    expect(await left()).toBe(2);
    at(Date.parse('2026-04-01') + 60 * DAY);
    await readerAt(0n);
    await expect(forget()).rejects.toThrow('has not been read by all');
    expect(await left()).toBe(2);
    await readerAt(2n ** 62n);
    await forget();
    expect(await left()).toBe(0);
    expect(forgotten).toEqual(['2026-03-31', '2026-04-01']);
  });
});

describe('the stream of a tab with several sessions', () => {
  it('is truncated behind the expired sessions and deleted with the last', async () => {
    const { at, visit, session, sweepSessions, stored, rows } = expiry;
    const first = await session();
    at(BEGUN + MINUTE);
    await visit({ ...first, ip: '9.9.9.9' });
    // Back on the first address: the last event belongs to the session that expires first.
    at(BEGUN + 2 * MINUTE);
    await visit({ ...first });
    at(EXPIRED);
    await sweepSessions();
    expect(await stored(first.stream)).toEqual([1, 2]);
    expect(await rows('session', first.partner_id)).toHaveLength(1);
    expect(await rows('expired_session', first.partner_id)).toMatchObject([{ session_id: first.session_id }]);
    at(EXPIRED + MINUTE);
    await sweepSessions();
    expect(await stored(first.stream)).toEqual([]);
    expect(await rows('expired_session', first.partner_id)).toHaveLength(2);
  });

  it('stays when a session begins at that moment, and the session continues', async () => {
    const { stack, at, visit, session, sweepSessions, stored, rows, expiredIds } = expiry;
    const { store } = stack;
    const first = await session();
    at(EXPIRED);
    await sweepSessions({
      store: {
        ...store,
        expire: async (...args) => {
          await visit({ ...first });
          await store.expire(...args);
        },
      },
      consumers: { projections: ['sessions'], processors: [] },
    });
    expect(await stored(first.stream)).toEqual([0, 1]);
    expect(await expiredIds(first.partner_id)).toEqual([]);
    await sweepSessions();
    expect(await stored(first.stream)).toEqual([1]);
    expect(await visit({ ...first })).toBe('visit');
    await sweepSessions();
    expect(await rows('session', first.partner_id)).toMatchObject([{ last_revision: 2 }]);
  });
});

describe('deletion', () => {
  it('waits for every consumer and logs the wait', async () => {
    const { at, warnings, readerAt, session, reveal, sweepSessions, sweepReveals, stored } = expiry;
    const [one, other] = [await session(), await reveal()];
    const blocked = new Map<string, [rows: number, seconds: number]>();
    const onBlocked = (name: string, rows: number, seconds: number): void =>
      void blocked.set(name, [rows, seconds]);
    const sweepAll = async () => {
      await sweepSessions({ onBlocked });
      await sweepReveals({ onBlocked });
      return [(await stored(one.stream)).length, (await stored(other.stream)).length];
    };
    at(EXPIRED + 10 * MINUTE - 1);
    await readerAt(null);
    expect(await sweepAll()).toEqual([1, 2]);
    expect([...blocked.values()].flat()).toEqual([0, 0, 0, 0]);
    at(EXPIRED + 10 * MINUTE);
    expect(await sweepAll()).toEqual([1, 2]);
    expect([...blocked.values()].flat()).toEqual([1, 600, 1, 600]);
    expect(warnings).toMatchObject([
      { what: 'sessions', rows: 1, oldest: isoTime(EXPIRED), notPassedBy: ['processor reader'] },
      { what: 'reveals', rows: 1, oldest: isoTime(EXPIRED), notPassedBy: ['processor reader'] },
    ]);
    // The log holds the session before the reveal.
    await readerAt(other.position - 1n);
    expect(await sweepAll()).toEqual([0, 2]);
    await readerAt(other.position);
    expect(await sweepAll()).toEqual([0, 0]);
    expect([...blocked.values()].flat()).toEqual([0, 0, 0, 0]);
  });

  it('waits for consumers that are stopped by an event or have not started, and not for removed ones', async () => {
    const { stack, at, options, session, sweepSessions, stored } = expiry;
    const { stream } = await session();
    const stopped = `(name, position, stopped_by) values ('poisoned', 0, 'an event')`;
    await stack.pool.query(`insert into work.processor ${stopped}; insert into read.projection ${stopped}`);
    at(EXPIRED);
    const { projections, processors } = options.consumers;
    for (const consumers of [
      { projections: [...projections, 'poisoned'], processors },
      { projections, processors: [...processors, 'poisoned'] },
      { projections, processors: [...processors, randomUUID()] },
    ]) {
      await sweepSessions({ consumers });
      expect(await stored(stream)).toEqual([0]);
    }
    await sweepSessions();
    expect(await stored(stream)).toEqual([]);
  });

  it('waits until the counts of its day are written', async () => {
    const { at, session, reveal, sweepSessions, sweepReveals, stored } = expiry;
    const [one, other] = [await session(), await reveal()];
    at(EXPIRED);
    for (const [day, left] of [
      [null, [0, 0, 1]],
      ['2026-03-01', [0, 0, 1]],
      ['2026-03-02', []],
    ] as const) {
      await sweepSessions({ closedBefore: async () => day });
      await sweepReveals({ closedBefore: async () => day });
      expect([...(await stored(one.stream)), ...(await stored(other.stream))]).toEqual(left);
    }
  });
});
