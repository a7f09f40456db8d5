import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { observeSignals } from '../../commands/signals/observe-signals.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { readSignals } from '../../domain/signals/observation.ts';
import { createDayKeys, type DayKeys, keyedDigest } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { expireSignals } from '../../processors/signals/expire-signals.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { forgetSignalsOf, signals } from '../../projections/signals/signals.ts';
import { signal } from '../support/signals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let keys: DayKeys;
const digest = keyedDigest(randomBytes(32));
const master = masterKeyFrom(randomBytes(32));
const READER = 'reader';
const BEYOND_HEAD = 2n ** 62n;
beforeAll(async () => {
  stack = await startTestStack();
  keys = createDayKeys({ pool: stack.pool, master, clock: stack.clock });
  stack.project([signals]);
  await stack.pool.query('insert into work.processor (name, position) values ($1, $2)', [
    READER,
    BEYOND_HEAD,
  ]);
});
afterAll(() => stack.close());

/** Observes a batch at the current time and returns its stream. */
const observeBatch = async (): Promise<string> => {
  const read = readSignals({ signals: [signal(stack.clock.now()), signal(stack.clock.now())] });
  if (!read.ok) throw new Error('wrong');
  await observeSignals({ store: stack.store, keys, digest }, read.value, stack.context());
  await stack.caughtUp([signals]);
  return `signals-${new Date(stack.clock.now()).toISOString().slice(0, 10)}`;
};
const warnings: object[] = [];
const blocked: [days: number, seconds: number][] = [];
const run = (forget = (day: string) => forgetSignalsOf(stack.pool, day)) =>
  expireSignals(
    {
      ...stack,
      log: { warn: (what: object) => void warnings.push(what) } as unknown as Logger,
      consumers: { projections: [signals.name], processors: [READER] },
      onBlocked: (_name, days, seconds) => void blocked.push([days, seconds]),
      signal: new AbortController().signal,
    },
    forget,
  );
const readerAt = (position: bigint) =>
  stack.pool.query('update work.processor set position = $2 where name = $1', [READER, position]);
const stored = async (stream: string) =>
  (await stack.rows('select revision from eventlog.event where stream = $1', [stream])).length;
const rows = async (day: string) =>
  (await stack.rows('select 1 from read.signal where day = $1', [day])).length;

describe('the signals of a day', () => {
  it("are deleted when the last of them has expired, not before, while the next day's signals stay", async () => {
    const begun = stack.clock.now();
    const stream = await observeBatch();
    await observeBatch();
    stack.clock.set(begun + DAY);
    const next = await observeBatch();
    stack.clock.set(Date.parse('2026-04-01') - 1);
    await run();
    expect([await stored(stream), await rows('2026-03-01')]).toEqual([2, 4]);
    stack.clock.set(Date.parse('2026-04-01'));
    for (let runs = 0; runs < 2; runs += 1) {
      await run();
      expect([await stored(stream), await rows('2026-03-01')]).toEqual([0, 0]);
      expect([await stored(next), await rows('2026-03-02')]).toEqual([1, 2]);
    }
    const before = await stack.rows('select * from read.signal order by event_id');
    await rebuild({ store: stack.store, url: stack.url, projections: [signals] });
    expect(await stack.rows('select * from read.signal order by event_id')).toEqual(before);
  });

  it('cannot be decrypted from a copy after their day key is destroyed', async () => {
    stack.clock.set(Date.parse('2026-05-01T12:00:00Z'));
    const stream = await observeBatch();
    const [kept] = (await stack.rows('select data from eventlog.event where stream = $1', [stream])) as [
      { data: { clues: [{ domain: string; sealed: string }] } },
    ];
    const [{ domain, sealed }] = kept.data.clues;
    const begun = stack.clock.now();
    const open = async () => {
      const attacker = createDayKeys({ pool: stack.pool, master, clock: { now: () => begun } });
      return (await attacker.of('2026-05-01'))?.open(Buffer.from(sealed, 'base64'), domain).toString();
    };
    expect(await open()).toBe('acme.io');
    stack.clock.set(Date.parse('2026-06-01'));
    await keys.destroyExpired();
    await expect(open()).rejects.toThrow();
  });

  it('are deleted completely by the next run when a run died after it deleted the stream', async () => {
    stack.clock.set(Date.parse('2026-07-01T12:00:00Z'));
    await run();
    const stream = await observeBatch();
    stack.clock.advance(31 * DAY);
    await expect(run(() => Promise.reject(new Error('killed')))).rejects.toThrow('killed');
    expect([await stored(stream), await rows('2026-07-01')]).toEqual([0, 2]);
    await run();
    expect(await rows('2026-07-01')).toBe(0);
  });

  it('stay until every consumer has read them, and the wait is logged', async () => {
    stack.clock.set(Date.parse('2026-09-01T12:00:00Z'));
    const stream = await observeBatch();
    const [{ position }] = (await stack.rows('select position from eventlog.event where stream = $1', [
      stream,
    ])) as [{ position: string }];
    await readerAt(BigInt(position) - 1n);
    stack.clock.set(Date.parse('2026-10-02') + 10 * MINUTE - 1);
    await run();
    expect([await stored(stream), blocked.at(-1), warnings]).toEqual([1, [0, 0], []]);
    stack.clock.advance(1);
    await run();
    expect([await stored(stream), blocked.at(-1)]).toEqual([1, [1, 600]]);
    expect(warnings).toMatchObject([
      { what: 'signals', rows: 1, oldest: '2026-10-02T00:00:00.000Z', notPassedBy: ['processor reader'] },
    ]);
    await readerAt(BigInt(position));
    await run();
    expect([await stored(stream), blocked.at(-1)]).toEqual([0, [0, 0]]);
  });
});
