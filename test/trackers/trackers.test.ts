import { describe, expect, it, test } from 'vitest';
import type { TrackerEvent } from '../../domain/trackers/events.ts';
import {
  isOrigin,
  originMatches,
  type TrackerCommand,
  trackersDecider,
} from '../../domain/trackers/trackers.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const at = new Date(AT).toISOString();
const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
const created = (nth: number): TrackerEvent => ({
  type: 'trackers.TrackerCreated.v1',
  data: {
    tracker_id: id(nth),
    partner_id: ANNA,
    name: `site ${nth}`,
    origins: ['https://example.com'],
    customer_reference: null,
    created_at: at,
  },
});
const disabled = (nth: number): TrackerEvent => ({
  type: 'trackers.TrackerDisabled.v1',
  data: { tracker_id: id(nth), partner_id: ANNA, disabled_at: at },
});
const enabled = (nth: number): TrackerEvent => ({
  type: 'trackers.TrackerEnabled.v1',
  data: { tracker_id: id(nth), partner_id: ANNA, enabled_at: at },
});
const deleted = (nth: number): TrackerEvent => ({
  type: 'trackers.TrackerDeleted.v1',
  data: { tracker_id: id(nth), partner_id: ANNA, deleted_at: at },
});
const create = (nth: number, over: Partial<Extract<TrackerCommand, { type: 'Create' }>> = {}) =>
  ({
    type: 'Create',
    partner_id: ANNA,
    tracker_id: id(nth),
    name: `site ${nth}`,
    origins: ['https://example.com'],
    customer_reference: null,
    limit: 2,
    at: AT,
    ...over,
  }) as const;
const changeStatus = (type: 'Disable' | 'Enable' | 'Delete', nth: number) =>
  ({ type, partner_id: ANNA, tracker_id: id(nth), at: AT }) as const;

describe('a tracker', () => {
  it('is created below the limit, which does not count deleted trackers', () => {
    given(trackersDecider, [])
      .when(create(1))
      .thenEvents([created(1)]);
    given(trackersDecider, [created(1), created(2)])
      .when(create(3))
      .thenRefused('tracker_limit');
    given(trackersDecider, [created(1), created(2), disabled(2)])
      .when(create(3))
      .thenRefused('tracker_limit');
    given(trackersDecider, [created(1), created(2), deleted(2)])
      .when(create(3))
      .thenEvents([created(3)]);
  });
  it('has a name and a reference of 1 to 200 characters', () => {
    given(trackersDecider, [])
      .when(create(1, { name: '  site 1 ' }))
      .thenEvents([created(1)]);
    for (const name of ['', '   ', 'x'.repeat(201), 'a\u0000', '\ud800']) {
      given(trackersDecider, []).when(create(1, { name })).thenRefused('invalid_tracker');
    }
    for (const customer_reference of ['', 'x'.repeat(201)]) {
      given(trackersDecider, []).when(create(1, { customer_reference })).thenRefused('invalid_tracker');
    }
    expect(trackersDecider.decide(create(1, { name: '😀'.repeat(200) }), trackersDecider.initial).ok).toBe(
      true,
    );
  });
  it('has 1 to 50 different origins', () => {
    const many = (count: number) => Array.from({ length: count }, (_, n) => `https://s${n}.example.com`);
    for (const origins of [[], many(51), ['https://a.com', 'https://a.com'], ['https://A.com']]) {
      given(trackersDecider, []).when(create(1, { origins })).thenRefused('invalid_origin');
    }
    expect(trackersDecider.decide(create(1, { origins: many(50) }), trackersDecider.initial).ok).toBe(true);
  });
  it('changes in what is given alone, each judged as at its creation', () => {
    const updated = (over: object): TrackerEvent => ({
      type: 'trackers.TrackerUpdated.v1',
      data: {
        ...{ tracker_id: id(1), partner_id: ANNA, name: 'site 1', origins: ['https://example.com'] },
        ...{ customer_reference: null, updated_at: at, ...over },
      },
    });
    const update = (changes: object) =>
      ({ type: 'Update', partner_id: ANNA, tracker_id: id(1), changes, at: AT }) as const;
    const when = (changes: object) => given(trackersDecider, [created(1), disabled(1)]).when(update(changes));
    when({ name: ' new ' }).thenEvents([updated({ name: 'new' })]);
    when({ origins: ['https://a.example'], customer_reference: 'c' }).thenEvents([
      updated({ origins: ['https://a.example'], customer_reference: 'c' }),
    ]);
    when({}).thenEvents([]);
    when({ name: 'site 1', origins: ['https://example.com'] }).thenEvents([]);
    when({ name: '  ' }).thenRefused('invalid_tracker');
    when({ customer_reference: '' }).thenRefused('invalid_tracker');
    when({ origins: [] }).thenRefused('invalid_origin');
    when({ origins: ['https://a.example/'] }).thenRefused('invalid_origin');
    given(trackersDecider, [created(1), updated({ customer_reference: 'c' })])
      .when(update({ customer_reference: null }))
      .thenEvents([updated({})]);
    const gone = given(trackersDecider, [created(1), deleted(1)]);
    gone.when(update({ name: 'new' })).thenRefused('tracker_deleted');
    gone.when(update({ name: '' })).thenRefused('invalid_tracker');
    given(trackersDecider, []).when(update({})).thenRefused('tracker_not_found');
  });

  it('is disabled and enabled idempotently', () => {
    given(trackersDecider, [created(1)])
      .when(changeStatus('Disable', 1))
      .thenEvents([disabled(1)]);
    given(trackersDecider, [created(1)])
      .when(changeStatus('Enable', 1))
      .thenEvents([]);
    given(trackersDecider, [created(1), disabled(1)])
      .when(changeStatus('Enable', 1))
      .thenEvents([enabled(1)]);
  });
  it('is deleted for ever, whether disabled or not', () => {
    given(trackersDecider, [created(1)])
      .when(changeStatus('Delete', 1))
      .thenEvents([deleted(1)]);
    given(trackersDecider, [created(1), disabled(1)])
      .when(changeStatus('Delete', 1))
      .thenEvents([deleted(1)]);
    given(trackersDecider, [created(1), deleted(1)])
      .when(changeStatus('Enable', 1))
      .thenRefused('tracker_deleted');
    given(trackersDecider, [created(1), deleted(1)])
      .when(changeStatus('Disable', 1))
      .thenRefused('tracker_deleted');
    given(trackersDecider, [created(1)])
      .when(changeStatus('Delete', 2))
      .thenRefused('tracker_not_found');
  });
});

describe('an origin', () => {
  test.each([
    'https://example.com',
    'https://example.com:8443',
    'https://xn--bcher-kva.example',
    'https://*.example.com',
    'https://1.2.3.4',
    'https://[2600::1]:8443',
    'http://localhost',
    'http://localhost:3000',
    'http://127.0.0.1:8080',
    'http://[::1]:3000',
    'https://localhost',
  ])('may be %s', (text) => {
    expect(isOrigin(text)).toBe(true);
  });
  test.each([
    '',
    'null',
    '*',
    'example.com',
    'https://',
    'https://Example.com',
    'https://example.com/',
    'https://example.com/path',
    'https://example.com:443',
    'https://example.com?x',
    'https://example.com#',
    'https://user@example.com',
    'https://bücher.example',
    'https://example.com.',
    'https://a..example.com',
    'https://-a.example.com',
    'https://*example.com',
    'https://*.com',
    'https://a.*.example.com',
    'https://*.*.example.com',
    'https://*.example.com:8443',
    'https://*.1.2.3.4',
    'https://010.8.8.8',
    'http://example.com',
    'http://*.localhost',
    'http://128.0.0.1',
    'http://127.0.0.1:80',
    'ftp://example.com',
    ' https://example.com',
    'https://exa\nmple.com',
  ])('may not be %j', (text) => {
    expect(isOrigin(text)).toBe(false);
  });

  test.each([
    ['https://example.com', 'https://example.com', true],
    ['https://example.com', 'http://example.com', false],
    ['https://example.com', 'https://example.com:8443', false],
    ['https://*.example.com', 'https://www.example.com', true],
    ['https://*.example.com', 'https://a.b.example.com', true],
    ['https://*.example.com', 'https://example.com', false],
    ['https://*.example.com', 'https://badexample.com', false],
    ['https://*.example.com', 'https://.example.com', false],
    ['https://*.example.com', 'https://www.example.com:8443', false],
    ['https://*.example.com', 'http://www.example.com', false],
    ['https://*.example.com', 'https://evil.com/.example.com', false],
    ['https://*.example.com', 'https://evil.com#.example.com', false],
    ['https://*.example.com', 'null', false],
  ])('%s matches a page of %s: %s', (origin, page, matches) => {
    expect(originMatches([origin], page)).toBe(matches);
  });
});
