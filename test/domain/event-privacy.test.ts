import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { eventPrivacy, into, maskEvent, metadataPrivacy, rulesOf } from '../../domain/event-privacy.ts';
import type { EventMetadata } from '../../event-store/port.ts';

interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape | boolean;
  readonly items?: Shape | boolean;
  readonly prefixItems?: readonly Shape[];
  readonly anyOf?: readonly Shape[];
}

/** The paths of all values that are neither object nor list. */
const leaves = (shape: Shape, path: readonly string[] = []): string[] => {
  const { properties, additionalProperties, items, prefixItems, anyOf } = shape;
  if (anyOf) return anyOf.flatMap((one) => (one.type === 'null' ? [] : leaves(one, path)));
  if (properties)
    return Object.entries(properties).flatMap(([name, inner]) => leaves(inner, [...path, name]));
  if (typeof additionalProperties === 'object') return leaves(additionalProperties, [...path, '*']);
  if (prefixItems) return prefixItems.flatMap((inner, index) => leaves(inner, [...path, String(index)]));
  if (typeof items === 'object') return leaves(items, path);
  return [path.join('.')];
};

const schemas = eventCatalogue.flatMap(({ events }) => Object.entries(events));
const at = (rules: ReturnType<typeof rulesOf>, path: string) =>
  path.split('.').reduce((left, name) => into(left, name), rules);

describe('the privacy classes of event fields', () => {
  it('cover every stored event and no other', () => {
    expect(Object.keys(eventPrivacy).toSorted()).toEqual(schemas.map(([name]) => name).toSorted());
  });

  it.each(schemas)('cover every field of %s once, and no other field', (name, schema) => {
    const rules = rulesOf(eventPrivacy[name]);
    const fields = [...new Set(leaves(z.toJSONSchema(schema, { io: 'input', reused: 'inline' }) as Shape))];
    for (const field of fields) {
      expect(
        at(rules, field).map(({ path }) => path.length),
        field,
      ).toEqual([0]);
    }
    for (const rule of rules) {
      const meant = fields.some((field) => at([rule], field).some(({ path }) => path.length === 0));
      expect(meant, rule.path.join('.')).toBe(true);
    }
  });

  it('cover every field of the metadata: ids and times', () => {
    const fields: Record<keyof Required<EventMetadata>, 'shown'> = {
      $correlationId: 'shown',
      $causationId: 'shown',
      at: 'shown',
      expires_at: 'shown',
      partner_id: 'shown',
      key_id: 'shown',
      user_id: 'shown',
      traceparent: 'shown',
    };
    const said = rulesOf(metadataPrivacy).map(({ path, sight }) => [path.join('.'), sight]);
    expect(Object.fromEntries(said)).toEqual(fields);
  });
});

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
