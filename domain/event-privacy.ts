import { z } from 'zod';
import { eventCatalogue } from './event-catalogue.ts';
import { type Shape, shapeOf, shownText, type Visibility, visibilityOf } from './kernel/visibility.ts';

/** What is known of a value: its visibility where it is neither object nor list, else that of what it holds. */
interface Field {
  readonly visibility?: Visibility;
  readonly fields?: Readonly<Record<string, Field>>;
  /** Of any name. */
  readonly others?: Field;
  readonly items?: Field;
  /** What the first items of a list are, as in JSON Schema. */
  readonly prefixItems?: readonly Field[];
}

const metadataSchema = z.object({
  $correlationId: shownText(),
  $causationId: shownText(),
  at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  partner_id: z.uuid(),
  key_id: shownText(),
  user_id: z.uuid(),
  traceparent: shownText(),
});

const fieldOf = (schema: z.ZodType): Field => fieldOfShape(shapeOf(schema));

function fieldOfShape(shape: Shape): Field {
  const { properties, additionalProperties, items, prefixItems } = shape;
  const alternatives = (shape.anyOf ?? shape.oneOf ?? []) as readonly Shape[];
  if (alternatives.length > 0) {
    const fields = alternatives.filter(({ type }) => type !== 'null').map(fieldOfShape);
    // What may be text is as personal as the text.
    return fields.find(({ visibility }) => visibility === 'personal') ?? Object.assign({}, ...fields);
  }
  if (properties) {
    const each = Object.entries(properties).map(([name, one]) => [name, fieldOfShape(one as Shape)]);
    return { fields: Object.fromEntries(each) };
  }
  if (typeof additionalProperties === 'object')
    return { others: fieldOfShape(additionalProperties as Shape) };
  if (prefixItems) return { prefixItems: prefixItems.map((one) => fieldOfShape(one as Shape)) };
  if (typeof items === 'object') {
    const item = fieldOfShape(items as Shape);
    // A list that is hidden does not show its length.
    return item.visibility === undefined || item.visibility === 'shown' ? { items: item } : item;
  }
  return { visibility: visibilityOf(shape) };
}

const METADATA = fieldOf(metadataSchema);

/** By stored type, made when it is asked for. */
const known = new Map<string, Field>();
function dataOf(type: string): Field | undefined {
  const events = eventCatalogue.find(({ events }) => Object.hasOwn(events, type))?.events;
  const schema = events?.[type];
  if (schema !== undefined && !known.has(type)) known.set(type, fieldOf(schema));
  return known.get(type);
}

const MASKED = '(masked)';
const SECRET = '(secret)';

/** Masks an event's data and metadata. Personal fields are shown if `unmasked`; secret and unknown ones never are. */
export function maskEvent(
  { type, data, metadata }: { readonly type: string; readonly data: object; readonly metadata: object },
  unmasked: boolean,
): { readonly data: unknown; readonly metadata: unknown } {
  return {
    data: mask(data, dataOf(type), unmasked),
    metadata: mask(metadata, METADATA, unmasked),
  };
}

function mask(value: unknown, field: Field | undefined, unmasked: boolean): unknown {
  if (value === null) return null;
  if (field === undefined || field.visibility === 'secret') return SECRET;
  if (field.visibility === 'personal') return unmasked ? value : MASKED;
  if (Array.isArray(value)) {
    const { items, prefixItems } = field;
    return value.map((item, index) => mask(item, prefixItems?.[index] ?? items, unmasked));
  }
  if (typeof value !== 'object') return field.visibility === undefined ? SECRET : value;
  const { fields, others } = field;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const own = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : others;
      return [name, mask(inner, own, unmasked)];
    }),
  );
}
