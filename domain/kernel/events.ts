import type { z } from 'zod';

/** The events of one kind of stream: stored name → shape. The names and shapes are a storage format. */
export type EventSchemas = Readonly<Record<string, z.ZodType>>;

/** The union of what a set of schemas describes, as `{ type, data }`. */
export type EventOf<Schemas extends EventSchemas> = {
  [Name in keyof Schemas & string]: { readonly type: Name; readonly data: z.output<Schemas[Name]> };
}[keyof Schemas & string];

/** The event is of a version that this program does not know: a later release wrote it. */
export class LaterVersion extends Error {
  constructor(type: string) {
    super(`a later version of Doorplate wrote ${type}: upgrade this one`);
  }
}

const VERSION = /\.v\d+$/;

/** Whether a stored name is a version, not known here, of an event of which `isKnown` knows the first one. */
export const isLaterVersion = (type: string, isKnown: (type: string) => boolean): boolean =>
  !type.endsWith('.v1') && VERSION.test(type) && isKnown(type.replace(VERSION, '.v1')) && !isKnown(type);

/**
 * Reads a stored event as one of `schemas`; null when its type is none of theirs. Defaults in a schema are
 * how a field that an older version lacks is filled in.
 * @throws ZodError when the data has not the shape of its type: a poison event
 * @throws LaterVersion rather than pass over an event that a later release has given another shape
 */
export const readEvent = <Schemas extends EventSchemas>(
  schemas: Schemas,
  stored: { readonly type: string; readonly data: object },
): EventOf<Schemas> | null => {
  const isKnown = (type: string): boolean => Object.hasOwn(schemas, type);
  if (isLaterVersion(stored.type, isKnown)) throw new LaterVersion(stored.type);
  const schema = isKnown(stored.type) ? schemas[stored.type] : undefined;
  return schema ? ({ type: stored.type, data: schema.parse(stored.data) } as EventOf<Schemas>) : null;
};
