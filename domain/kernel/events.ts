import type { z } from 'zod';

/** The events of one kind of stream: stored name → shape. The names and shapes are a storage format. */
export type EventSchemas = Readonly<Record<string, z.ZodType>>;

/** The union of what a set of schemas describes, as `{ type, data }`. */
export type EventOf<Schemas extends EventSchemas> = {
  [Name in keyof Schemas & string]: { readonly type: Name; readonly data: z.output<Schemas[Name]> };
}[keyof Schemas & string];

/**
 * Reads a stored event as one of `schemas`; null when its type is none of theirs. Defaults in a schema are
 * how a field that an older version lacks is filled in.
 * @throws ZodError when the data has not the shape of its type: a poison event
 */
export const readEvent = <Schemas extends EventSchemas>(
  schemas: Schemas,
  stored: { readonly type: string; readonly data: object },
): EventOf<Schemas> | null => {
  const schema = Object.hasOwn(schemas, stored.type) ? schemas[stored.type] : undefined;
  return schema ? ({ type: stored.type, data: schema.parse(stored.data) } as EventOf<Schemas>) : null;
};
