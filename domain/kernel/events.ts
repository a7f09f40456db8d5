import type { z } from 'zod';

/** Schemas of one kind of stream by stored type. Types and shapes are a storage format. */
export type EventSchemas = Readonly<Record<string, z.ZodType>>;

/** Union of the events that the schemas describe, as `{ type, data }`. */
export type EventOf<Schemas extends EventSchemas> = {
  [Name in keyof Schemas & string]: { readonly type: Name; readonly data: z.output<Schemas[Name]> };
}[keyof Schemas & string];

/** The event's version is unknown because a later release wrote it. */
export class LaterVersion extends Error {
  constructor(type: string) {
    super(`a later version of Doorplate wrote ${type}: upgrade this one`);
  }
}

const VERSION = /\.v\d+$/;

/** Returns whether a stored type is an unknown later version of an event whose first version `isKnown` accepts. */
export const isLaterVersion = (type: string, isKnown: (type: string) => boolean): boolean =>
  !type.endsWith('.v1') && VERSION.test(type) && isKnown(type.replace(VERSION, '.v1')) && !isKnown(type);

/**
 * Reads a stored event by `schemas`; null if none of them has its type. Schema defaults fill in fields that older versions
 * lack.
 * @throws ZodError if the data does not match its schema: a poison event
 * @throws LaterVersion instead of skipping an event whose shape a later release has changed
 */
export function readEvent<Schemas extends EventSchemas>(
  schemas: Schemas,
  stored: { readonly type: string; readonly data: object },
): EventOf<Schemas> | null {
  const isKnown = (type: string): boolean => Object.hasOwn(schemas, type);
  if (isLaterVersion(stored.type, isKnown)) throw new LaterVersion(stored.type);
  const schema = isKnown(stored.type) ? schemas[stored.type] : undefined;
  return schema ? ({ type: stored.type, data: schema.parse(stored.data) } as EventOf<Schemas>) : null;
}
