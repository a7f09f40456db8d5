import { describe, expect, it } from 'vitest';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import {
  type Endpoint,
  type EndpointCommand,
  type Endpoints,
  endpointsDecider,
  recoverableSince,
  snapshotEndpoints,
} from '../../domain/webhooks/endpoints.ts';
import type { EndpointChangeEvent } from '../../domain/webhooks/events.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
const TRACKER = id(99);
const URL = 'https://hooks.example.com/doorplate';
const secret = (of: string, master_key_id = 'old') => ({ master_key_id, sealed: of });

const created = (nth: number): EndpointChangeEvent => ({
  type: 'webhooks.EndpointCreated.v1',
  data: {
    webhook_id: id(nth),
    partner_id: ANNA,
    name: `receiver ${nth}`,
    url: URL,
    events: ['session.created'],
    tracker_id: null,
    secret: secret('first'),
    created_at: isoTime(AT),
  },
});
const updated = (
  nth: number,
  over: Partial<Extract<EndpointChangeEvent, { type: 'webhooks.EndpointUpdated.v1' }>['data']>,
): EndpointChangeEvent => ({
  type: 'webhooks.EndpointUpdated.v1',
  data: {
    webhook_id: id(nth),
    partner_id: ANNA,
    name: `receiver ${nth}`,
    events: ['session.created'],
    enabled: true,
    updated_at: isoTime(AT),
    ...over,
  },
});
const rotated = (nth: number, to: string, at = AT): EndpointChangeEvent => ({
  type: 'webhooks.SecretRotated.v1',
  data: {
    webhook_id: id(nth),
    partner_id: ANNA,
    secret: secret(to),
    rotated_at: isoTime(at),
    rotation_until: isoTime(at + DAY),
  },
});
const deleted = (nth: number): EndpointChangeEvent => ({
  type: 'webhooks.EndpointDeleted.v1',
  data: { webhook_id: id(nth), partner_id: ANNA, deleted_at: isoTime(AT) },
});

type Of<Type extends EndpointCommand['type']> = Extract<EndpointCommand, { type: Type }>;
const create = (nth: number, over: Partial<Of<'Create'>> = {}): Of<'Create'> => ({
  type: 'Create',
  partner_id: ANNA,
  webhook_id: id(nth),
  name: `receiver ${nth}`,
  url: URL,
  events: ['session.created'],
  tracker_id: null,
  tracker_known: false,
  secret: secret('first'),
  limit: 2,
  destinations: { allowHttp: false, allowPorts: [], allowNetworks: [], ownOrigins: [] },
  at: AT,
  ...over,
});
const update = (nth: number, over: Partial<Of<'Update'>>): Of<'Update'> => ({
  type: 'Update',
  partner_id: ANNA,
  webhook_id: id(nth),
  name: null,
  events: null,
  enabled: null,
  at: AT,
  ...over,
});
const rotate = (nth: number, to: string, at = AT): Of<'Rotate'> => ({
  type: 'Rotate',
  partner_id: ANNA,
  webhook_id: id(nth),
  secret: secret(to),
  at,
});
const remove = (nth: number, at = AT): Of<'Delete'> => ({
  type: 'Delete',
  partner_id: ANNA,
  webhook_id: id(nth),
  at,
});
const fold = (...events: EndpointChangeEvent[]): Endpoints =>
  events.reduce(endpointsDecider.evolve, endpointsDecider.initial);
const one = (...events: EndpointChangeEvent[]): Endpoint | undefined => fold(...events).byId.get(id(1));

describe('a webhook endpoint', () => {
  it('is created below the limit, which counts paused endpoints and not deleted ones', () => {
    given(endpointsDecider, [])
      .when(create(1))
      .thenEvents([created(1)]);
    given(endpointsDecider, [created(1), created(2), updated(2, { enabled: false })])
      .when(create(3))
      .thenRefused('webhook_limit');
    given(endpointsDecider, [created(1), created(2), deleted(2)])
      .when(create(3))
      .thenEvents([created(3)]);
    expect(one(created(1))).toMatchObject({ enabled: true, deleted_at: null, updated_at: isoTime(AT) });
  });

  it('has a name of 1 to 100 characters after trimming', () => {
    given(endpointsDecider, [])
      .when(create(1, { name: '  receiver 1 ' }))
      .thenEvents([created(1)]);
    expect(endpointsDecider.decide(create(1, { name: '😀'.repeat(100) }), endpointsDecider.initial).ok).toBe(
      true,
    );
    for (const name of ['', '   ', 'x'.repeat(101), 'a\u0000', '\ud800']) {
      given(endpointsDecider, []).when(create(1, { name })).thenRefused('invalid_webhook');
      given(endpointsDecider, [created(1)])
        .when(update(1, { name }))
        .thenRefused('invalid_webhook');
    }
  });

  it('subscribes to one or both of two events, without repeats', () => {
    for (const events of [['reveal.completed'], ['reveal.completed', 'session.created']]) {
      given(endpointsDecider, [])
        .when(create(1, { events }))
        .thenEvents([{ ...created(1), data: { ...created(1).data, events } }]);
    }
    for (const events of [
      [],
      ['webhook.test'],
      ['session.created', 'x'],
      ['session.created', 'session.created'],
    ]) {
      given(endpointsDecider, []).when(create(1, { events })).thenRefused('invalid_webhook');
      given(endpointsDecider, [created(1)])
        .when(update(1, { events }))
        .thenRefused('invalid_webhook');
    }
  });

  it('has a public destination and an existing tracker', () => {
    given(endpointsDecider, [])
      .when(create(1, { url: 'http://hooks.example.com/' }))
      .thenRefused('invalid_webhook_url');
    given(endpointsDecider, [])
      .when(create(1, { tracker_id: TRACKER }))
      .thenRefused('tracker_not_found');
    given(endpointsDecider, [])
      .when(create(1, { tracker_id: TRACKER, tracker_known: true }))
      .thenEvents([{ ...created(1), data: { ...created(1).data, tracker_id: TRACKER } }]);
  });

  it('is refused for invalid fields before any other reason', () => {
    const wrong = { tracker_id: TRACKER, limit: 0 };
    given(endpointsDecider, [])
      .when(create(1, { ...wrong, url: 'x', name: '' }))
      .thenRefused('invalid_webhook');
    given(endpointsDecider, [])
      .when(create(1, { ...wrong, url: 'x' }))
      .thenRefused('invalid_webhook_url');
    given(endpointsDecider, []).when(create(1, wrong)).thenRefused('tracker_not_found');
    given(endpointsDecider, [])
      .when(update(1, { name: '' }))
      .thenRefused('invalid_webhook');
  });

  it('changes in the given fields, and gets no event without a change', () => {
    given(endpointsDecider, [created(1)])
      .when(update(1, { enabled: false }))
      .thenEvents([updated(1, { enabled: false })]);
    given(endpointsDecider, [created(1)])
      .when(update(1, { name: ' other ', events: ['reveal.completed'] }))
      .thenEvents([updated(1, { name: 'other', events: ['reveal.completed'] })]);
    given(endpointsDecider, [created(1)])
      .when(update(1, {}))
      .thenEvents([]);
    given(endpointsDecider, [created(1)])
      .when(update(1, { name: 'receiver 1', events: ['session.created'], enabled: true }))
      .thenEvents([]);
    given(endpointsDecider, [created(1), updated(1, { enabled: false })])
      .when(update(1, { enabled: true }))
      .thenEvents([updated(1, { enabled: true })]);
  });

  it('is deleted once, paused or not, and refuses every later command', () => {
    given(endpointsDecider, [created(1), updated(1, { enabled: false })])
      .when(remove(1))
      .thenEvents([deleted(1)]);
    given(endpointsDecider, [created(1), deleted(1)])
      .when(remove(1, AT + DAY))
      .thenEvents([]);
    expect(one(created(1), deleted(1))).toMatchObject({ enabled: false, deleted_at: isoTime(AT) });
    for (const command of [update(1, {}), update(1, { enabled: true }), rotate(1, 'second')]) {
      given(endpointsDecider, [created(1), deleted(1)])
        .when(command)
        .thenRefused('webhook_not_found');
      given(endpointsDecider, []).when(command).thenRefused('webhook_not_found');
    }
    given(endpointsDecider, []).when(remove(1)).thenRefused('webhook_not_found');
  });

  it('is forgotten 90 days after its deletion', () => {
    const events = [created(1), deleted(1)];
    given(endpointsDecider, events)
      .when(remove(1, AT + 90 * DAY - 1))
      .thenEvents([]);
    given(endpointsDecider, events)
      .when(remove(1, AT + 90 * DAY))
      .thenRefused('webhook_not_found');
  });
});

describe("a webhook endpoint's secret", () => {
  it('is replaced, paused or not, and the old one signs for 24 more hours', () => {
    given(endpointsDecider, [created(1), updated(1, { enabled: false })])
      .when(rotate(1, 'second'))
      .thenEvents([rotated(1, 'second')]);
    expect(one(created(1), rotated(1, 'second'))).toMatchObject({
      secret: secret('second'),
      previous: secret('first'),
      secret_rotation_until: isoTime(AT + DAY),
    });
  });

  it('is not replaced again before the overlap has ended', () => {
    const events = [created(1), rotated(1, 'second')];
    given(endpointsDecider, events)
      .when(rotate(1, 'third', AT + DAY - 1))
      .thenRefused('webhook_rotation_pending');
    given(endpointsDecider, events)
      .when(rotate(1, 'third', AT + DAY))
      .thenEvents([rotated(1, 'third', AT + DAY)]);
    expect(one(...events, rotated(1, 'third', AT + DAY))?.previous).toEqual(secret('second'));
  });

  it('is resealed as it was read, and not when it was replaced meanwhile', () => {
    const resealed = { secret: secret('second resealed', 'new'), previous: secret('first resealed', 'new') };
    const reseal = (of: string): Of<'Reseal'> => ({
      type: 'Reseal',
      partner_id: ANNA,
      webhook_id: id(1),
      replaced: secret(of),
      ...resealed,
      at: AT,
    });
    const event: EndpointChangeEvent = {
      type: 'webhooks.SecretsResealed.v1',
      data: { webhook_id: id(1), partner_id: ANNA, ...resealed },
    };
    const events = [created(1), rotated(1, 'second')];
    given(endpointsDecider, events).when(reseal('second')).thenEvents([event]);
    given(endpointsDecider, events).when(reseal('first')).thenEvents([]);
    given(endpointsDecider, [...events, deleted(1)])
      .when(reseal('second'))
      .thenRefused('webhook_not_found');
    expect(one(...events, event)).toMatchObject({
      ...resealed,
      secret_rotation_until: isoTime(AT + DAY),
      updated_at: isoTime(AT),
    });
  });
});

describe('a recovery of a webhook endpoint', () => {
  const facts = (nth: number) => ({
    ...{ partner_id: ANNA, webhook_id: id(1), recovery_id: id(nth) },
    ...{ since: isoTime(AT - DAY), deliveries: 7, held_back: true },
  });
  const recover = (nth: number, over: Partial<Of<'Recover'>> = {}): Of<'Recover'> => ({
    ...{ type: 'Recover', ...facts(nth), has_room: true, at: AT, ...over },
  });
  const requested = (nth: number, at = AT): EndpointChangeEvent => ({
    type: 'webhooks.RecoveryRequested.v1',
    data: { ...facts(nth), requested_at: isoTime(at) },
  });
  const complete = (nth: number): Of<'CompleteRecovery'> => {
    const { partner_id, webhook_id, recovery_id } = facts(nth);
    return { type: 'CompleteRecovery', partner_id, webhook_id, recovery_id, at: AT };
  };
  const completed = (nth: number): EndpointChangeEvent => {
    const { partner_id, webhook_id, recovery_id } = facts(nth);
    return {
      type: 'webhooks.RecoveryCompleted.v1',
      data: { partner_id, webhook_id, recovery_id, completed_at: isoTime(AT) },
    };
  };

  it('is requested of an enabled endpoint, with room in the queue', () => {
    given(endpointsDecider, [created(1)])
      .when(recover(20))
      .thenEvents([requested(20)]);
    given(endpointsDecider, []).when(recover(20)).thenRefused('webhook_not_found');
    given(endpointsDecider, [created(1), updated(1, { enabled: false })])
      .when(recover(20))
      .thenRefused('webhook_disabled');
    given(endpointsDecider, [created(1), deleted(1)])
      .when(recover(20))
      .thenRefused('webhook_disabled');
    given(endpointsDecider, [created(1)])
      .when(recover(20, { has_room: false }))
      .thenRefused('webhook_queue_full');
  });

  it('runs alone until it is completed, however long that takes', () => {
    const running = [created(1), requested(20)];
    given(endpointsDecider, running)
      .when(recover(21, { has_room: false, at: AT + 7 * DAY }))
      .thenEvents([]);
    expect(one(...running)?.recovery).toMatchObject({ recovery_id: id(20), completed_at: null });
    given(endpointsDecider, [...running, completed(20)])
      .when(recover(21))
      .thenEvents([requested(21)]);
  });

  it('is requested and completed once, also of an endpoint that was deleted meanwhile', () => {
    given(endpointsDecider, [created(1), requested(20), completed(20)])
      .when(recover(20))
      .thenEvents([]);
    given(endpointsDecider, [created(1), requested(20), deleted(1)])
      .when(complete(20))
      .thenEvents([completed(20)]);
    given(endpointsDecider, [created(1), requested(20), completed(20)])
      .when(complete(20))
      .thenEvents([]);
    given(endpointsDecider, [created(1), requested(20)])
      .when(complete(19))
      .thenEvents([]);
  });

  it('begins at a UTC timestamp of the last 30 days', () => {
    expect(recoverableSince('2026-03-14T09:26:53Z', Date.parse('2026-03-14T09:26:53Z'))).toBe(
      '2026-03-14T09:26:53.000Z',
    );
    expect(recoverableSince(isoTime(AT - 30 * DAY), AT)).toBe(isoTime(AT - 30 * DAY));
    const wrong = [
      isoTime(AT - 30 * DAY - 1),
      isoTime(AT + 1),
      '2026-02-30T00:00:00Z',
      '2026-03-01',
      7,
      null,
    ];
    for (const since of [...wrong, '2026-03-01T00:00:00+01:00', undefined])
      expect(recoverableSince(since, AT)).toBeNull();
  });

  it('stays in a snapshot', () => {
    const state = fold(created(1), requested(20), completed(20));
    const restored = endpointsDecider.evolve(endpointsDecider.initial, snapshotEndpoints(state));
    expect(restored.byId.get(id(1))?.recovery).toEqual(state.byId.get(id(1))?.recovery);
  });
});

describe('endpoints deleted 90 days ago', () => {
  const forget = (days: number) => ({ type: 'Forget', partner_id: ANNA, at: AT + days * DAY }) as const;
  it('are removed once by a snapshot of the others', () => {
    const before = [created(1), created(2), created(3), deleted(2)];
    given(endpointsDecider, before).when(forget(89)).thenEvents([]);
    const kept = [created(1), created(3)].reduce(endpointsDecider.evolve, endpointsDecider.initial);
    given(endpointsDecider, before)
      .when(forget(90))
      .thenEvents([snapshotEndpoints(kept)]);
  });
});
