import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toNewEvents } from '../../commands/handle.ts';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { sessionEvents } from '../../domain/sessions/events.ts';
import { closeTrackerDays, trackerDaysClosedBefore } from '../../processors/usage/close-tracker-days.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { usage } from '../../projections/usage/lookup-counts.ts';
import { trackerUsage } from '../../projections/usage/tracker-usage.ts';
import { type House, openHouse } from '../support/house.ts';

const PROJECTIONS = [usage, trackerUsage];
const TRACKER = randomUUID();
let house: House;
beforeEach(async () => {
  house = await openHouse();
  house.project(PROJECTIONS);
});
afterEach(() => house.close());

const session = async (): Promise<void> => {
  const at = house.clock.now();
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
  const context = { ...house.context(), expiresAt: data.expires_at };
  await house.store.append(
    `tab-${randomUUID()}`,
    'no_stream',
    toNewEvents(sessionEvents, [{ type: 'sessions.SessionCreated.v1', data }], context),
  );
};
const close = () =>
  closeTrackerDays({
    store: house.store,
    pool: house.pool,
    clock: house.clock,
    caughtUp: async () => {
      await house.caughtUp(PROJECTIONS);
      return true;
    },
  });
const hours = async () => {
  await house.caughtUp(PROJECTIONS);
  return house.rows(
    `select to_char(hour at time zone 'UTC', 'MM-DD HH24') as hour, sessions::int from read.tracker_hour order by hour`,
  );
};

describe('a day of trackers', () => {
  it('is closed an hour after it is over, and not before; a day without anything too', async () => {
    await session();
    await close();
    expect(await trackerDaysClosedBefore(house)).toBeNull();
    house.clock.at += 12 * HOUR + HOUR / 2;
    await close();
    expect(await trackerDaysClosedBefore(house)).toBeNull();
    house.clock.at += DAY + HOUR;
    await close();
    await house.caughtUp(PROJECTIONS);
    expect(await trackerDaysClosedBefore(house)).toBe('2026-03-03');
  });

  it.each([
    ['hours', 14 * HOUR],
    ['a year', 365 * DAY],
  ])(
    'that a clock ahead by %s has closed is open once the clock is put right, and is closed again when it is over',
    async (_by, ahead) => {
      await session();
      house.clock.at += ahead;
      await close();
      expect(await hours()).toEqual([{ hour: '03-01 12', sessions: 1 }]);
      house.clock.at -= ahead;
      await close();
      await house.caughtUp(PROJECTIONS);
      expect(await trackerDaysClosedBefore(house)).toBeNull();
      await session();
      house.clock.at += HOUR;
      await session();
      house.clock.at += DAY;
      await close();
      await close();
      await house.caughtUp(PROJECTIONS);
      expect(await trackerDaysClosedBefore(house)).toBe('2026-03-02');
      house.clock.at += 31 * DAY;
      await rebuild({ ...house, projections: PROJECTIONS });
      expect(await hours()).toEqual([
        { hour: '03-01 12', sessions: 2 },
        { hour: '03-01 13', sessions: 1 },
      ]);
    },
  );

  it('tells after thirty days, when its sessions are gone, what it told before; closing it again adds nothing', async () => {
    await session();
    await session();
    house.clock.at += HOUR;
    await session();
    const before = [
      { hour: '03-01 12', sessions: 2 },
      { hour: '03-01 13', sessions: 1 },
    ];
    expect(await hours()).toEqual(before);
    house.clock.at += DAY;
    await close();
    await close();
    expect(await hours()).toEqual(before);
    house.clock.at += 31 * DAY;
    await rebuild({ ...house, projections: PROJECTIONS });
    expect(await hours()).toEqual(before);
  });
});
