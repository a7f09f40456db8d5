import { describe, expect, it } from 'vitest';
import { maskEvent } from '../../domain/event-privacy.ts';
import type { EventMetadata } from '../../event-store/port.ts';

const metadata: Required<EventMetadata> = {
  $correlationId: 'c',
  $causationId: 'c',
  at: 't',
  expires_at: 't',
  partner_id: 'p',
  key_id: 'k',
  user_id: 'u',
  traceparent: 'x',
};

const masked = (type: string, data: object, unmasked = false) =>
  maskEvent({ type, data, metadata: {} }, unmasked).data;

describe('a masked event', () => {
  const made = {
    reservation_id: 'r',
    partner_id: 'p',
    key_id: 'k',
    ip: '8.8.8.8',
    kind: 'first',
    made_at: 't',
  };

  it('hides personal values unless they are requested', () => {
    expect(masked('lookup.ReservationMade.v1', made)).toEqual({ ...made, ip: '(masked)' });
    expect(masked('lookup.ReservationMade.v1', made, true)).toEqual(made);
  });

  it('hides secrets always', () => {
    const created = { webhook_id: 'w', url: 'https://x/token', secret: { master_key_id: 'm', sealed: 's' } };
    const secret = { master_key_id: '(secret)', sealed: '(secret)' };
    expect(masked('webhooks.EndpointCreated.v1', created)).toEqual({
      webhook_id: 'w',
      url: '(masked)',
      secret,
    });
    expect(masked('webhooks.EndpointCreated.v1', created, true)).toEqual({ ...created, secret });
    expect(masked('partners.KeyCreated.v1', { hash: 'h' }, true)).toEqual({ hash: '(secret)' });
  });

  it('shows every field of the metadata: ids and times', () => {
    expect(
      maskEvent({ type: 'any', data: {}, metadata: { ...metadata, more: 'm' } }, false).metadata,
    ).toEqual({
      ...metadata,
      more: '(secret)',
    });
  });

  it('hides unknown types, unknown fields and unexpected shapes', () => {
    expect(masked('new.Thing.v1', made, true)).toBe('(secret)');
    expect(masked('toString', made, true)).toBe('(secret)');
    expect(masked('lookup.ReservationMade.v1', { kind: { deep: 'x' }, more: [1], none: null }, true)).toEqual(
      {
        kind: { deep: '(secret)' },
        more: '(secret)',
        none: null,
      },
    );
  });

  it('is masked inside lists, nested lists and objects of any name', () => {
    const snapshot = { day: 'd', used_today: { key_a: 1 }, keys: ['key_a'], open: [['r', '8.8.8.8', 0, 1]] };
    expect(masked('lookup.IntakeSnapshotted.v1', snapshot)).toEqual({
      ...snapshot,
      open: [['r', '(masked)', 0, 1]],
    });
    const clues = [{ event_id: 'e', submitted: true, sealed: 's' }];
    expect(masked('signals.SignalsObserved.v1', { clues, left_out: ['a', 'b'] })).toEqual({
      clues: [{ event_id: '(masked)', submitted: true, sealed: '(masked)' }],
      left_out: '(masked)',
    });
  });

  it('hides unknown metadata', () => {
    const metadata = { at: 't', $correlationId: 'c', more: 'x' };
    expect(maskEvent({ type: 'x', data: {}, metadata }, true).metadata).toEqual({
      ...metadata,
      more: '(secret)',
    });
  });
});
