import { z } from 'zod';

/**
 * To whom a stored field is shown. `shown`: to every operator. `personal`: on request; addresses and their digests, labels, URLs, free
 * text of partners or other systems, and sealed data. `secret`: never.
 */
export type Visibility = 'shown' | 'personal' | 'secret';

const visibilities = z.registry<{ visibility: Visibility }>();

/** Text that every operator may see. */
export const shownText = (): z.ZodString => z.string().register(visibilities, { visibility: 'shown' });

/** Text that nobody may see. */
export const secretText = (): z.ZodString => z.string().register(visibilities, { visibility: 'secret' });

/** The JSON Schema of stored data, with what `shownText` and `secretText` say. */
export type Shape = z.core.JSONSchema.BaseSchema & { readonly visibility?: Visibility };

export const shapeOf = (schema: z.ZodType): Shape =>
  z.toJSONSchema(schema, { io: 'input', reused: 'inline', metadata: visibilities });

/** Text is personal unless its schema says otherwise; ids, times, numbers and listed values are shown. */
export function visibilityOf({
  visibility,
  type,
  format,
  pattern,
  enum: values,
  const: value,
}: Shape): Visibility {
  const isText = [type].flat().includes('string') && !(format || pattern || values || value);
  return visibility ?? (isText ? 'personal' : 'shown');
}
