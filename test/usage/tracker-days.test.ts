import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { sessionEvents } from '../../domain/sessions/events.ts';
import { trackerHourEvents } from '../../domain/usage/events.ts';
import { closeTrackerDays, trackerDaysClosedBefore } from '../../processors/usage/close-usage-streams.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { usage } from '../../projections/usage/lookup-counts.ts';
import { trackerUsage } from '../../projections/usage/tracker-usage.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const PROJECTIONS = [usage, trackerUsage];
const TRACKER = randomUUID();
let stack: TestStack;
beforeEach(async () => {
  stack = await startTestStack();
  stack.project(PROJECTIONS);
});
afterEach(() => stack.close());

const session = async (): Promise<string> => {
  const at = stack.clock.now();
  const data = {
    session_id: randomUUID(),
    tracker_id: TRACKER,
    partner_id: randomUUID(),
    visit_id: randomUUID(),
    visitor: 'a digest',
    visitor_country: null,
    first_seen_at: new Date(at).toISOString(),
    expires_at: new Date(at + 30 * DAY).toISOString(),
    sealed: 'sealed',
  };
  const context = { ...stack.context(), expiresAt: data.expires_at };
  const stream = `tab-${randomUUID()}`;
  await stack.store.append(
    stream,
    'no_stream',
    toNewEvents(sessionEvents, [{ type: 'sessions.SessionCreated.v1', data }], context),
  );
  return stream;
};
const close = () =>
  closeTrackerDays({
    store: stack.store,
    pool: stack.pool,
    clock: stack.clock,
    waitForHead: async () => {
      await stack.caughtUp(PROJECTIONS);
      return true;
    },
  });
const hours = async () => {
  await stack.caughtUp(PROJECTIONS);
  return stack.rows(
    `select to_char(hour at time zone 'UTC', 'MM-DD HH24') as hour, sessions::int from read.tracker_hour order by hour`,
  );
};

describe('the daily counts of trackers', () => {
  it('are closed an hour after the end of the day, not before, also for a day without visits', async () => {
    await session();
    await close();
    expect(await trackerDaysClosedBefore(stack)).toBeNull();
    stack.clock.advance(12 * HOUR + HOUR / 2);
    await close();
    expect(await trackerDaysClosedBefore(stack)).toBeNull();
    stack.clock.advance(DAY + HOUR);
    await close();
    await stack.caughtUp(PROJECTIONS);
    expect(await trackerDaysClosedBefore(stack)).toBe('2026-03-03');
  });

  it.each([
    ['hours', 14 * HOUR],
    ['a year', 365 * DAY],
  ])(
    "are open after a clock ahead by %s closed them, and are closed again after the day's end",
    async (_by, ahead) => {
      await session();
      stack.clock.advance(ahead);
      await close();
      expect(await hours()).toEqual([{ hour: '03-01 12', sessions: 1 }]);
      stack.clock.advance(-ahead);
      await close();
      await stack.caughtUp(PROJECTIONS);
      expect(await trackerDaysClosedBefore(stack)).toBeNull();
      await session();
      stack.clock.advance(HOUR);
      await session();
      stack.clock.advance(DAY);
      await close();
      await close();
      await stack.caughtUp(PROJECTIONS);
      expect(await trackerDaysClosedBefore(stack)).toBe('2026-03-02');
      stack.clock.advance(31 * DAY);
      await rebuild({ ...stack, projections: PROJECTIONS });
      expect(await hours()).toEqual([
        { hour: '03-01 12', sessions: 2 },
        { hour: '03-01 13', sessions: 1 },
      ]);
    },
  );

  it('stay the same after thirty days, when the sessions are gone; a second close adds nothing', async () => {
    await session();
    await session();
    stack.clock.advance(HOUR);
    await session();
    const before = [
      { hour: '03-01 12', sessions: 2 },
      { hour: '03-01 13', sessions: 1 },
    ];
    expect(await hours()).toEqual(before);
    stack.clock.advance(DAY);
    await close();
    await close();
    expect(await hours()).toEqual(before);
    stack.clock.advance(31 * DAY);
    await rebuild({ ...stack, projections: PROJECTIONS });
    expect(await hours()).toEqual(before);
  });
});

describe('counts that an erasure keeps', () => {
  const partner_id = randomUUID();
  const keep = async (type: keyof typeof trackerHourEvents, data: object) => {
    const events = toNewEvents(trackerHourEvents, [{ type, data: { partner_id, ...data } }], stack.context());
    await stack.store.append(`expired-${partner_id}-2026-03-01`, 'any', events);
    await stack.caughtUp(PROJECTIONS);
  };
  const rebuilt = async () => {
    const { store, url } = stack;
    await rebuild({ store, url, projections: PROJECTIONS });
    return hours();
  };

  it('are those before its mark; sessions that began since are counted once, also in a rebuild without the erased', async () => {
    const erased = await session();
    await session();
    const mark_id = randomUUID();
    await keep('usage.TrackerHoursMarked.v1', { mark_id, hours: [[TRACKER, '2026-03-01T12']] });
    await session();
    await keep('usage.TrackerHoursKept.v1', { mark_id, counts: [[TRACKER, '2026-03-01T12', 2, 0]] });
    await session();
    await stack.store.expire(erased, 0);
    const four = [{ hour: '03-01 12', sessions: 4 }];
    expect(await hours()).toEqual(four);
    expect(await rebuilt()).toEqual(four);
  });

  it('do not replace those of a day that was closed after the mark', async () => {
    const erased = await session();
    const mark_id = randomUUID();
    await keep('usage.TrackerHoursMarked.v1', { mark_id, hours: [[TRACKER, '2026-03-01T12']] });
    stack.clock.advance(DAY);
    await close();
    await keep('usage.TrackerHoursKept.v1', { mark_id, counts: [[TRACKER, '2026-03-01T12', 1, 0]] });
    await stack.store.expire(erased, 0);
    const one = [{ hour: '03-01 12', sessions: 1 }];
    expect(await hours()).toEqual(one);
    expect(await rebuilt()).toEqual(one);
  });
});
