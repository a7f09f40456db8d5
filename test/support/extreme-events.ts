/** Stored events with the most extreme values that their schemas accept. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { z } from 'zod';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { LARGEST_LIMIT } from '../../domain/partners/partner.ts';

interface Shape {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Shape | boolean;
  readonly items?: Shape | boolean;
  readonly prefixItems?: readonly Shape[];
  readonly anyOf?: readonly Shape[];
}

const hex = fc.constantFrom(...'0123456789abcdef');
const visible = fc.constantFrom(...Array.from({ length: 94 }, (_, n) => String.fromCharCode(0x21 + n)));
const exactly = (length: number, unit: fc.Arbitrary<string>) =>
  fc.noShrink(fc.string({ unit, minLength: length, maxLength: length }));

/** Few enough that events meet the same rows; the least and the greatest among them. */
const uuid = fc.constantFrom(
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '0f0c5c0e-5a0f-4d0b-9a2e-8c1d3b7e4f60',
  '019aaaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee',
);
const instant = fc.oneof(
  fc.constantFrom('0000-01-01T00:00:00.000Z', '0000-02-29T23:59:59.999Z', '0001-01-01T00:00:00.000Z'),
  fc.constantFrom('9999-12-31T23:59:59.999Z', '2026-03-01T11:00:00.000Z', '2026-03-01T12:00:00.000Z'),
);
const day = fc.constantFrom('0001-01-01', '2026-03-01', '2026-03-02', '9999-12-31');
const UNSTORABLE = ['\u0000', 'a\u0000b', '\ud800', '\udc00\ud800'];
/** PostgreSQL cannot compress the random ones below the size of an index row. */
const LONG = [
  randomBytes(6_000).toString('base64'),
  randomBytes(2_000).toString('latin1'),
  ...['İ'.repeat(200), '\u{10ffff}'.repeat(200), 'ﷺ'.repeat(3_000), '\u0301'.repeat(3_000)],
];
const ODD = ['', ' ', '\\u0000', `'"\\`, '{}', 'NULL', '0000-01-01', '0000-01-01T00:00:00Z'];
const TEXTS = [...UNSTORABLE, ...LONG, ...ODD];
const text = fc.oneof(
  ...[UNSTORABLE, LONG, ODD].map((some) => fc.constantFrom(...some)),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const website = fc.constantFrom(
  'https://www.example.com/',
  `https://${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example/`,
);
const COUNTS = [0, 1, 2, 1_000, 2 ** 31];
const position = fc.constantFrom('0', '1', '9223372036854775807');
const hour = day.map((of) => `${of}T23`);
const counter = fc.constantFrom(1, 2, 3, 2 ** 31 - 1);
const part = fc.constantFrom(0, 1, 2);
const limit = fc.constantFrom(1, 50, LARGEST_LIMIT);
const address = fc.oneof(
  fc.nat(9).map((n) => `8.8.8.${n}`),
  fc.constant('2a00:1450:4001:ffff:ffff:ffff:ffff:ffff'),
);
const keyId = fc.constantFrom('key_a', `key_${'f'.repeat(24)}`);
const digest = exactly(64, hex);
const base64 = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64'));

/**
 * Fields whose values the service makes itself, or whose commands bound them, by name or by event and path; and websites, some of
 * which are to have a host. All other text and numbers are as extreme as their schema allows.
 */
const BOUNDED: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  ip: address,
  key_id: keyId,
  user_id: uuid,
  hash: digest,
  visitor: digest,
  domain: digest,
  site: digest,
  page_run: digest,
  // A name is active once; without bias, so that it never repeats.
  hostname: fc.noBias(exactly(250, hex)).map((name) => `${name.slice(0, 60)}.${name.slice(60)}`),
  event_id: exactly(128, visible),
  'webhooks.PayloadStored.v1 event_id': uuid.map((id) => `evt_session_${id}`),
  'webhooks.PayloadsExpired.v1 events.0': uuid.map((id) => `evt_session_${id}`),
  'partners.PartnerCreated.v1 name': exactly(100, fc.constantFrom('\u{10ffff}', '\u{1f600}')),
  website: fc.oneof(text, website),
  origins: exactly(250, hex).map((host) => `https://*.${host}`),
  round: counter,
  attempt: counter,
  'lookup.EnrichmentJoined.v1 attempts': counter,
  cycle: counter,
  part,
  parts: part,
  left_out: exactly(128, visible),
  requests_per_second: limit,
  new_enrichments_per_day: limit,
  pending_enrichments: limit,
  keys: limit,
  domains: limit,
  http_status: fc.constantFrom(100, 200, 999),
  bytes: fc.constantFrom(0, 2 ** 20),
  position,
  source_position: position,
  sealed: base64,
  day,
  'counts.0': keyId,
  'counts.1': hour,
  'hours.1': hour,
  'open.0': uuid,
  'open.1': address,
  'open.2': part,
  'open.3': fc.constantFrom(0, Date.parse('9999-12-31T23:59:59.999Z')),
  'lookup.IntakeSnapshotted.v1 keys': keyId,
};

const boundedAt = (type: string, path: readonly string[]): fc.Arbitrary<unknown> | undefined =>
  BOUNDED[`${type} ${path.join('.')}`] ?? BOUNDED[path.slice(-2).join('.')] ?? BOUNDED[path.at(-1) ?? ''];

const scalar = (shape: Shape, type: string, path: readonly string[]): fc.Arbitrary<unknown> => {
  switch (shape.format) {
    case 'uuid':
    case 'guid':
      return uuid;
    case 'date-time':
      return instant;
    case 'date':
      return day;
  }
  if (shape.type === 'boolean') return fc.boolean();
  if (shape.type === 'null') return fc.constant(null);
  const { pattern, minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = shape;
  const bounded = boundedAt(type, path);
  if (bounded) return bounded.filter((value) => typeof value !== 'number' || value >= minimum);
  if (shape.type === 'integer')
    return fc.constantFrom(...COUNTS.filter((n) => n >= minimum), minimum, maximum);
  if (shape.type !== 'string') throw new TypeError(`${type} ${path.join('.')}: ${JSON.stringify(shape)}`);
  if (pattern === undefined) return text;
  const allowed = TEXTS.filter((one) => new RegExp(pattern).test(one));
  const matching = fc.stringMatching(new RegExp(pattern));
  return allowed.length === 0 ? matching : fc.oneof(fc.constantFrom(...allowed), matching);
};

const extremeOf = (shape: Shape, type: string, path: readonly string[]): fc.Arbitrary<unknown> => {
  const inner = (of: Shape, ...more: string[]) => extremeOf(of, type, [...path, ...more]);
  const { anyOf, enum: values, properties, required = [], prefixItems, items, additionalProperties } = shape;
  if (anyOf) return fc.oneof(...anyOf.map((one) => inner(one)));
  if ('const' in shape) return fc.constant(shape.const);
  if (values) return fc.constantFrom(...values);
  if (properties) {
    const fields: Record<string, fc.Arbitrary<unknown>> = {};
    for (const [name, of] of Object.entries(properties)) fields[name] = inner(of, name);
    return fc.record(fields, { requiredKeys: [...required] });
  }
  if (typeof additionalProperties === 'object') return fc.dictionary(keyId, inner(additionalProperties, '*'));
  if (prefixItems) return fc.tuple(...prefixItems.map((of, index) => inner(of, String(index))));
  if (typeof items === 'object') return fc.array(inner(items), { maxLength: 4 });
  if (Array.isArray(shape.type)) return fc.oneof(...shape.type.map((one) => inner({ ...shape, type: one })));
  return scalar(shape, type, path);
};

export interface ExtremeEvent {
  readonly stream: string;
  readonly type: string;
  readonly data: object;
}

/** Events of these types, as often one as the other. */
export const extremeEvent = (types: readonly string[]): fc.Arbitrary<ExtremeEvent> => {
  const kinds = eventCatalogue.flatMap(({ stream, events }) =>
    Object.entries(events)
      .filter(([type]) => types.includes(type))
      .map(([type, schema]) => {
        const shape = z.toJSONSchema(schema, { io: 'input', reused: 'inline' }) as Shape;
        const data = extremeOf(shape, type, []) as fc.Arbitrary<object>;
        return fc.record({ stream: streamOf(stream), type: fc.constant(type), data });
      }),
  );
  return fc.oneof(...kinds);
};

/** `template`: as the catalogue has it, such as `expired-<partner id>-<utc day>`. */
const streamOf = (template: string): fc.Arbitrary<string> =>
  fc.tuple(uuid, day).map(([id, of]) => template.replace('<utc day>', of).replace(/<[^>]+>/g, id));
