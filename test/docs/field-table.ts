/** JSON Schema as table rows, one per field; nested fields have dotted names. */
import type { z } from 'zod';
import { type Shape as Schema, shapeOf, visibilityOf } from '../../domain/kernel/visibility.ts';

/** Renders the fields of a stored event's data as a Markdown table. */
export const fieldTable = (schema: z.ZodType): string => {
  const rows = fieldsOf('', shapeOf(schema));
  return ['| field | type |', '|---|---|', ...rows.map(([name, type]) => `| ${name} | ${type} |`)].join('\n');
};

type Row = readonly [name: string, type: string];

const fieldsOf = (prefix: string, schema: Schema): Row[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const schemaOfField = field as Schema;
    const path = prefix + name;
    const optional = schema.required?.includes(name) ? '' : `, ${absent(schemaOfField)}`;
    return [[`\`${path}\``, `${typeOf(schemaOfField)}${optional}`] as const, ...within(path, schemaOfField)];
  });

/** The fields of an object, of an array's items, or of alternative objects. */
const within = (path: string, schema: Schema): Row[] => {
  if (schema.items) return within(`${path}[]`, schema.items as Schema);
  if (typeof schema.additionalProperties === 'object')
    return within(`${path}.*`, schema.additionalProperties as Schema);
  const alternatives = schema.anyOf ?? schema.oneOf ?? [];
  return [...fieldsOf(`${path}.`, schema), ...alternatives.flatMap((one) => within(path, one as Schema))];
};

const absent = ({ default: value }: Schema): string =>
  value === undefined ? 'optional' : `${code(JSON.stringify(value))} where absent`;

const typeOf = (schema: Schema): string => {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return alternatives.map((one) => typeOf(one as Schema)).join(' or ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(' / ');
  if (schema.prefixItems) return `[${schema.prefixItems.map((item) => typeOf(item as Schema)).join(', ')}]`;
  if (schema.type === 'array') return `array${limits(schema)} of ${typeOf(schema.items as Schema)}`;
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object')
    return `object of ${typeOf(schema.additionalProperties as Schema)}`;
  if (schema.format) return schema.format;
  const visibility = visibilityOf(schema);
  const hidden = visibility === 'shown' ? '' : ` (${visibility})`;
  return `${[schema.type ?? 'anything'].flat().join(' or ')}${limits(schema)}${hidden}`;
};

const limits = (schema: Schema): string => {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = schema;
  const from = minimum ?? minLength ?? minItems;
  const to = maximum ?? maxLength ?? maxItems;
  const bounded = to !== undefined && to !== Number.MAX_SAFE_INTEGER;
  const isFree = from === undefined || from === Number.MIN_SAFE_INTEGER;
  const range = isFree ? (bounded ? [`up to ${to}`] : []) : [bounded ? `${from} to ${to}` : `from ${from}`];
  const parts = [...range, ...(pattern === undefined ? [] : [code(pattern)])];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
};

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
