import { describe, expect, it, test } from 'vitest';
import type { DomainEvent, DomainSlotEvent } from '../../domain/domains/events.ts';
import {
  type DomainCommand,
  domainDecider,
  isDomainName,
  nextCheck,
  snapshotName,
} from '../../domain/domains/hostname.ts';
import { heldSlots, mayStand, slotsDecider } from '../../domain/domains/slots.ts';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT, BERT } from '../lookup/lookup-events.ts';

const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
const time = (after = 0) => new Date(AT + after).toISOString();
const HOSTNAME = 'visits.example.com';
const TRACKER = id(100);
const ids = (nth = 1) => ({ domain_id: id(nth), hostname: HOSTNAME });

const claimed = (nth = 1, after = 0): DomainEvent => ({
  type: 'domains.DomainClaimed.v1',
  data: { ...ids(nth), tracker_id: TRACKER, partner_id: ANNA, claimed_at: time(after) },
});
const activated = (after: number): DomainEvent => ({
  type: 'domains.DomainActivated.v1',
  data: { ...ids(), activated_at: time(after) },
});
const changed = (error: string | null, after: number): DomainEvent => ({
  type: 'domains.DomainLookChanged.v1',
  data: { ...ids(), error, looked_at: time(after) },
});
const failed = (error: string, after: number): DomainEvent => ({
  type: 'domains.DomainFailed.v1',
  data: { ...ids(), error, failed_at: time(after) },
});
const released = (nth = 1, after = 0): DomainEvent => ({
  type: 'domains.DomainReleased.v1',
  data: { ...ids(nth), tracker_id: TRACKER, released_at: time(after) },
});
const claim = (nth = 1, after = 0): DomainCommand => ({
  type: 'Claim',
  ...ids(nth),
  tracker_id: TRACKER,
  partner_id: ANNA,
  proven: false,
  at: AT + after,
});
const look = (error: string | null, after: number, nth = 1, proven = false): DomainCommand => ({
  type: 'RecordCheck',
  ...ids(nth),
  error,
  proven,
  at: AT + after,
});
const release = (nth = 1, after = 0): DomainCommand => ({ type: 'Release', ...ids(nth), at: AT + after });

const BERTS = { tracker_id: id(200), partner_id: BERT };
const bertsClaim = (after = 0): DomainEvent => ({
  type: 'domains.DomainClaimed.v1',
  data: { ...ids(2), ...BERTS, claimed_at: time(after) },
});
const bertClaims = (proven = false): DomainCommand => ({
  type: 'Claim',
  ...ids(2),
  ...BERTS,
  proven,
  at: AT,
});
const bertsActivated = (after: number): DomainEvent => ({
  type: 'domains.DomainActivated.v1',
  data: { ...ids(2), activated_at: time(after) },
});
const bertsChanged = (error: string, after: number): DomainEvent => ({
  type: 'domains.DomainLookChanged.v1',
  data: { ...ids(2), error, looked_at: time(after) },
});

describe('a claim that a clock ahead by a year recorded', () => {
  const YEAR = 365 * DAY;
  it("is checked after the clock's correction and fails seven days after the first check", () => {
    given(domainDecider, [claimed(1, YEAR)])
      .when(look(null, 0))
      .thenEvents([activated(0)]);
    given(domainDecider, [claimed(1, YEAR)])
      .when(look('no_cname', 0))
      .thenEvents([changed('no_cname', 0)]);
    given(domainDecider, [claimed(1, YEAR), changed('no_cname', 0)])
      .when(look('no_cname', 7 * DAY))
      .thenEvents([failed('no_cname', 7 * DAY)]);
  });
  it('fails three days after the first check that finds it pointing elsewhere', () => {
    const before = [claimed(), activated(1), changed('no_cname', YEAR)];
    given(domainDecider, before)
      .when(look('no_cname', 5))
      .thenEvents([changed('no_cname', 5)]);
    given(domainDecider, [...before, changed('no_cname', 5)])
      .when(look('no_cname', 5 + 3 * DAY))
      .thenEvents([failed('no_cname', 5 + 3 * DAY)]);
  });
  it('stays active while it points to the service', () => {
    given(domainDecider, [claimed(1, YEAR), activated(YEAR)])
      .when(look(null, 5))
      .thenEvents([changed(null, 5)]);
  });
});

describe('a host name that two partners claim', () => {
  it('may be claimed by both while it is active for neither', () => {
    for (const since of [[], [failed('no_cname', 7 * DAY)]]) {
      given(domainDecider, [claimed(), ...since])
        .when(bertClaims())
        .thenEvents([bertsClaim()]);
    }
  });

  it('is refused to another partner while it is active, unless its TXT record holds the token', () => {
    const active = [claimed(), activated(1)];
    given(domainDecider, active).when(bertClaims()).thenRefused('domain_active_elsewhere');
    given(domainDecider, active).when(bertClaims(true)).thenEvents([bertsClaim()]);
  });

  it('is not activated by its CNAME alone', () => {
    const both = [claimed(), bertsClaim()];
    given(domainDecider, both)
      .when(look(null, 5))
      .thenEvents([changed('not_verified', 5)]);
    given(domainDecider, both)
      .when(look(null, 5, 2))
      .thenEvents([bertsChanged('not_verified', 5)]);
    given(domainDecider, both)
      .when(look(null, 5, 2, true))
      .thenEvents([bertsActivated(5)]);
    // The token alone does not activate it either.
    given(domainDecider, both)
      .when(look('no_cname', 5, 2, true))
      .thenEvents([bertsChanged('no_cname', 5)]);
  });

  it('is activated by its CNAME once the other claim has failed or is released', () => {
    for (const over of [failed('no_cname', 4), released(1, 4)]) {
      given(domainDecider, [claimed(), bertsClaim(), over])
        .when(look(null, 5, 2))
        .thenEvents([bertsActivated(5)]);
    }
  });

  it('changes hands when the CNAME of the proven claim is seen, and the former claim fails', () => {
    given(domainDecider, [claimed(), activated(1), bertsClaim(2)])
      .when(look(null, 5, 2, true))
      .thenEvents([failed('claimed_elsewhere', 5), bertsActivated(5)]);
  });

  it('needs proof for ever once it was active for another partner', () => {
    const left = [claimed(), activated(1), released(1, 2), bertsClaim(3)];
    given(domainDecider, left)
      .when(look(null, 5, 2))
      .thenEvents([bertsChanged('not_verified', 5)]);
    given(domainDecider, left)
      .when(look(null, 5, 2, true))
      .thenEvents([bertsActivated(5)]);
    // The partner that had it needs no proof.
    given(domainDecider, [claimed(), activated(1), released(1, 2), claimed(3, 3)])
      .when(look(null, 5, 3))
      .thenEvents([{ type: 'domains.DomainActivated.v1', data: { ...ids(3), activated_at: time(5) } }]);
  });

  it('has a snapshot that folds to the same state', () => {
    const events = [claimed(), activated(1), bertsClaim(2), changed('no_cname', 3), bertsChanged('x', 4)];
    const state = events.reduce(domainDecider.evolve, domainDecider.initial);
    expect(domainDecider.evolve(domainDecider.initial, snapshotName(state))).toEqual(state);
  });
});

describe('a host name', () => {
  it('has one owner at a time', () => {
    given(domainDecider, []).when(claim()).thenEvents([claimed()]);
    given(domainDecider, [claimed(1)])
      .when(claim(2))
      .thenRefused('domain_taken');
    for (const since of [[], [activated(1)], [failed('no_cname', 1)]]) {
      given(domainDecider, [claimed(1), ...since])
        .when(claim(2))
        .thenRefused('domain_taken');
    }
    given(domainDecider, [claimed(1), released(1)])
      .when(claim(2))
      .thenEvents([claimed(2)]);
  });

  it('keeps its state when its owner claims it again, unless it has failed', () => {
    given(domainDecider, [claimed()]).when(claim(1, 5)).thenEvents([]);
    given(domainDecider, [claimed(), activated(1)])
      .when(claim(1, 5))
      .thenEvents([]);
    given(domainDecider, [claimed(), failed('no_cname', 7 * DAY)])
      .when(claim(1, 8 * DAY))
      .thenEvents([claimed(1, 8 * DAY)]);
  });

  it('gets seven new days when it is claimed again after a failure, and keeps its creation time', () => {
    const events = [claimed(), failed('no_cname', 7 * DAY), claimed(1, 8 * DAY)];
    given(domainDecider, events)
      .when(look('no_cname', 14 * DAY))
      .thenEvents([changed('no_cname', 14 * DAY)]);
    expect(events.reduce(domainDecider.evolve, domainDecider.initial).claims.get(id(1))).toMatchObject({
      status: 'pending',
      created_at: time(),
      claimed_at: time(8 * DAY),
      last_error: null,
    });
  });

  it('is active once it points to the service', () => {
    given(domainDecider, [claimed(), changed('no_cname', 1)])
      .when(look(null, 2))
      .thenEvents([activated(2)]);
  });

  it('gets an event for a check with a new result and for no other', () => {
    given(domainDecider, [claimed()])
      .when(look('dns_timeout', 1))
      .thenEvents([changed('dns_timeout', 1)]);
    given(domainDecider, [claimed(), changed('dns_timeout', 1)])
      .when(look('dns_timeout', 2))
      .thenEvents([]);
    given(domainDecider, [claimed(), changed('dns_timeout', 1)])
      .when(look('no_cname', 2))
      .thenEvents([changed('no_cname', 2)]);
    given(domainDecider, [claimed(), activated(1)])
      .when(look(null, 2))
      .thenEvents([]);
  });

  test.each(['points_elsewhere', 'dns_timeout'])(
    'that is pending with %s fails after seven days',
    (error) => {
      const pending = [claimed(), changed(error, 1)];
      given(domainDecider, pending)
        .when(look(error, 7 * DAY - 1))
        .thenEvents([]);
      given(domainDecider, pending)
        .when(look(error, 7 * DAY))
        .thenEvents([failed(error, 7 * DAY)]);
      given(domainDecider, pending)
        .when(look(null, 7 * DAY))
        .thenEvents([activated(7 * DAY)]);
    },
  );

  test.each(['points_elsewhere', 'dns_timeout'])('that is active with %s fails after three days', (error) => {
    const active = [claimed(), activated(1)];
    given(domainDecider, active)
      .when(look(error, 9 * DAY))
      .thenEvents([changed(error, 9 * DAY)]);
    const missed = [...active, changed(error, 9 * DAY)];
    given(domainDecider, missed)
      .when(look(error, 12 * DAY - 1))
      .thenEvents([]);
    given(domainDecider, missed)
      .when(look(error, 12 * DAY))
      .thenEvents([failed(error, 12 * DAY)]);
    // Another error does not restart the three days.
    given(domainDecider, [...missed, changed('no_cname', 11 * DAY)])
      .when(look(error, 12 * DAY))
      .thenEvents([failed(error, 12 * DAY)]);
  });

  it('gets three new days after it has pointed to the service again', () => {
    const back = [claimed(), activated(1), changed('no_cname', DAY), changed(null, 3 * DAY)];
    given(domainDecider, back)
      .when(look('no_cname', 5 * DAY))
      .thenEvents([changed('no_cname', 5 * DAY)]);
    given(domainDecider, [...back, changed('no_cname', 5 * DAY)])
      .when(look('no_cname', 7 * DAY))
      .thenEvents([]);
  });

  it('ignores a check that began before the last event, or for another owner', () => {
    given(domainDecider, [claimed(), activated(10)])
      .when(look('dns_timeout', 9))
      .thenEvents([]);
    given(domainDecider, [claimed(), failed('no_cname', 10)])
      .when(look(null, 11))
      .thenEvents([]);
    given(domainDecider, [claimed(2)])
      .when(look(null, 5, 1))
      .thenEvents([]);
    given(domainDecider, [claimed(2)])
      .when(release(1, 5))
      .thenEvents([]);
  });

  it('is released in any state, once', () => {
    for (const since of [[], [activated(1)], [failed('no_cname', 1)]]) {
      given(domainDecider, [claimed(), ...since])
        .when(release(1, 5))
        .thenEvents([released(1, 5)]);
    }
    given(domainDecider, []).when(release()).thenEvents([]);
  });

  it('is checked soon, then more slowly, then daily, and always before its deadline', () => {
    const wait = (events: DomainEvent[], at: number) => {
      const mine = events.reduce(domainDecider.evolve, domainDecider.initial).claims.get(id(1));
      const next = mine ? nextCheck(mine, AT + at) : null;
      return next === null ? null : next - AT - at;
    };
    expect(wait([claimed()], 0)).toBe(5_000);
    expect(wait([claimed()], 10 * MINUTE)).toBe(MINUTE);
    expect(wait([claimed()], DAY)).toBe(HOUR);
    expect(wait([claimed()], 7 * DAY - MINUTE)).toBe(MINUTE);
    expect(wait([claimed(), activated(0)], 0)).toBe(DAY);
    expect(wait([claimed(), activated(0), changed('no_cname', DAY)], DAY)).toBe(HOUR);
    expect(wait([claimed(), activated(0), changed('no_cname', DAY)], 4 * DAY - MINUTE)).toBe(MINUTE);
    expect(wait([claimed(), failed('no_cname', 1)], 1)).toBeNull();
  });
});

const taken = (nth: number): DomainSlotEvent => ({
  type: 'domains.PlaceTaken.v1',
  data: {
    tracker_id: TRACKER,
    partner_id: ANNA,
    domain_id: id(nth),
    hostname: `s${nth}.example.com`,
    taken_at: time(),
  },
});
const freed = (nth: number): DomainSlotEvent => ({
  type: 'domains.PlaceFreed.v1',
  data: { tracker_id: TRACKER, domain_id: id(nth), hostname: `s${nth}.example.com`, freed_at: time() },
});
const closed: DomainSlotEvent = {
  type: 'domains.PlacesClosed.v1',
  data: { tracker_id: TRACKER, closed_at: time() },
};
const take = (nth: number, domainId = id(nth)) =>
  ({
    type: 'Take',
    tracker_id: TRACKER,
    partner_id: ANNA,
    domain_id: domainId,
    hostname: `s${nth}.example.com`,
    at: AT,
  }) as const;
const free = (nth: number) => ({ type: 'Free', tracker_id: TRACKER, domain_id: id(nth), at: AT }) as const;
const ten = Array.from({ length: 10 }, (_, nth) => taken(nth));

describe('the domain slots of a tracker', () => {
  it('number ten, and released ones do not count', () => {
    given(slotsDecider, ten.slice(1))
      .when(take(0))
      .thenEvents([taken(0)]);
    given(slotsDecider, ten).when(take(10)).thenRefused('domain_limit');
    given(slotsDecider, [...ten, freed(4)])
      .when(take(10))
      .thenEvents([taken(10)]);
  });
  it('are taken for a name once, also when all ten are taken', () => {
    given(slotsDecider, ten)
      .when(take(3, id(99)))
      .thenEvents([]);
  });
  it('are released once', () => {
    given(slotsDecider, ten)
      .when(free(3))
      .thenEvents([freed(3)]);
    given(slotsDecider, []).when(free(3)).thenEvents([]);
  });
  it('are closed with their tracker', () => {
    given(slotsDecider, ten).when({ type: 'Close', tracker_id: TRACKER, at: AT }).thenEvents([closed]);
    given(slotsDecider, [closed]).when(take(1)).thenRefused('tracker_deleted');
    const after = [taken(1), taken(2), freed(2), closed].reduce(slotsDecider.evolve, slotsDecider.initial);
    expect(heldSlots(after).map(({ domain_id }) => domain_id)).toEqual([id(1)]);
    expect(mayStand(after, id(1))).toBe(false);
    expect(mayStand([taken(1)].reduce(slotsDecider.evolve, slotsDecider.initial), id(1))).toBe(true);
  });
});

describe("a custom domain's name", () => {
  const OWN_HOSTS = ['doorplate.example', 'former.example.net'];
  test.each([
    'visits.example.com',
    'a.b',
    'a-b.example.co.uk',
    'xn--bcher-kva.example',
    '1.example',
    'example.net',
    'mydoorplate.example',
    `${'a'.repeat(63)}.com`,
  ])('may be %s', (name) => {
    expect(isDomainName(name, OWN_HOSTS)).toBe(true);
  });
  test.each([
    '',
    'localhost',
    'doorplate.example',
    'api.doorplate.example',
    'former.example.net',
    'www.former.example.net',
    'Visits.example.com',
    'visits.example.com.',
    '.example.com',
    'a..example.com',
    '-a.example.com',
    'a-.example.com',
    'a_b.example.com',
    '*.example.com',
    'bücher.example',
    'xn--bücher.example',
    '1.2.3.4',
    '1.2.3',
    '1.2.3.0x4',
    'example.1',
    '[::1]',
    '::1',
    'https://visits.example.com',
    'visits.example.com:443',
    'visits.example.com/',
    'user@example.com',
    ' visits.example.com',
    'visits.example.com\u0000',
    'visits\uff0eexample.com',
    `${'a'.repeat(64)}.com`,
    `${'a.'.repeat(126)}com`,
  ])('may not be %j', (name) => {
    expect(isDomainName(name, OWN_HOSTS)).toBe(false);
  });
});
