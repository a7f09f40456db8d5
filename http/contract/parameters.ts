/** Parameters of paths, and the fields of bodies. */
import { z } from 'zod';
import type { ApiRequest } from './route.ts';

/** Bytes of a tracker, domain or webhook management body (contract, Requests 4). */
export const MANAGEMENT_BODY_LIMIT = 16_384;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A UUID in canonical form; null for anything else. */
export const asUuid = (value: unknown): string | null =>
  typeof value === 'string' && UUID.test(value) ? value.toLowerCase() : null;

/** The path's id in canonical form; null when it is no UUID. */
export const uuidParam = (request: ApiRequest, name: string): string | null => asUuid(request.params[name]);

/** The names of a documented body's fields, with any values: a wrong value has its field's own code (contract, Requests 7). */
export const fieldNamesOf = <Fields extends z.ZodRawShape>({ shape }: z.ZodObject<Fields>) =>
  z.strictObject(
    Object.fromEntries(Object.keys(shape).map((name) => [name, z.unknown().optional()])) as {
      readonly [Name in keyof Fields]: z.ZodOptional<z.ZodUnknown>;
    },
  );

/** By hand, because a schema describes each of the 8,000 faults that a body may have, which takes 8 ms. */
export const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');
